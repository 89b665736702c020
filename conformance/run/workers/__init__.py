"""The processes in which implementations run: which there are, what each is asked, what is within. None imports pytest."""
