"""Files kept between runs, sealed by a checksum."""
