"""What is done with studies that are stored: verified, their networks written down, moved between ledgers."""
