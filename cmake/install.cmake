# Installation, exported targets and the relocatable package.
