"""Limits: every limit on text input, in one place.

In: nothing. Out: named numbers with their unit and reason. Limits on single fields are with the
fields; those are the API's, these are edgefast's.
Must never: be raised without a test that shows what the new number costs.
"""

#: Bytes of one file. Etcd keeps 8 GiB; a file past this is no configuration.
MAX_FILE_BYTES = 64 * 1024 * 1024

#: Documents of one file (`---` or items of a List).
MAX_DOCUMENTS = 200_000

#: Levels of nesting of one document; the deepest supported object needs about 15.
MAX_DEPTH = 64

#: Values that aliases of one document may stand for, counted as often as they are used
#: (a few lines can otherwise stand for billions: "billion laughs").
MAX_ALIAS_VALUES = 200_000

#: Problems kept of one file; a person reads the first few and fixes them.
MAX_PROBLEMS = 1_000

#: Characters of a wrong value that a message shows.
MAX_SHOWN_VALUE = 64

#: Characters of an object's name that a message shows: as long as names may be.
MAX_SHOWN_NAME = 253

#: Fields of one object that are not served and told one by one; with more, all of the object stands closed.
MAX_UNSERVED = 64

#: Entries of a list, and matches in all, of a route that only its place is read of; the API allows 16 rules with 128 matches.
MAX_CLOSED_PARTS = 1024
