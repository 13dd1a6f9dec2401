"""What somebody else's trainer can be trusted with: found by training it a few times, kept, said in reports."""
