"""Declarations of all records that users read or write; decoders, Arrow types and JSON Schema come from them."""
