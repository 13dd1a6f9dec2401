"""Files that are kept between runs, sealed by a checksum."""
