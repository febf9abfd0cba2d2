"""How a line of a serving process on standard error begins: time, level, where and process."""

import re

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (debug|info|warning|error) \w+\[\d+\] ")
