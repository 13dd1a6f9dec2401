"""Trainers that wrap other libraries, imported in their processes alone.

A trainer is found by the library's name, as `avalanche:AGEM`; see `PROVIDED` in `trainers/foreign/declaration.py`. The
library, its versions and the module here belong to the results.
"""
