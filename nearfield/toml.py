"""TOML for Python before 3.11 as well."""

try:
    from tomllib import loads
except ModuleNotFoundError:  # before 3.11
    from tomli import loads

__all__ = ["loads"]
