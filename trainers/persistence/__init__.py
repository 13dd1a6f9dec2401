"""Files kept between runs, each with a checksum."""
