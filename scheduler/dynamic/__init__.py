"""Dynamic resources: devices that nodes publish, claims to them, and which devices a claim is given."""
