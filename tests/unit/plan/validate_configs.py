"""Validates every shipped config with python3-jsonschema: a second opinion beside valijson.

Usage: validate_configs.py CONFIGS_FOLDER
"""

import json
import pathlib
import re
import sys

import jsonschema


def without_comments(text):
    """Comments stand on lines of their own in the shipped configs."""
    return re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)


def main():
    folder = pathlib.Path(sys.argv[1])
    schema = json.loads((folder / "schema" / "config.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    configs = sorted(folder.glob("*.json"))
    assert len(configs) >= 4, configs
    for path in configs:
        config = json.loads(without_comments(path.read_text()))
        validator.validate(config)
        config["sweeps"][0]["no_such_axis"] = 1
        assert not validator.is_valid(config), f"{path}: an unknown axis went unnoticed"
    print(f"{len(configs)} configs are valid")


if __name__ == "__main__":
    main()
