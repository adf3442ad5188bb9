"""Every record that users read or write, declared once; decoders, Arrow and JSON Schema are made from it."""
