"""Bounds of predicting. Each is far above honest use and far below what hurts a small server."""

MIB = 1024 * 1024

MOST_PICTURES = 64  # of one request, and of what runs as one batch
MOST_BYTES = 64 * MIB  # of one request's body
MOST_WAITING = 16  # requests with those that are worked at: half of what the server serves at once
MOST_WAITING_BYTES = 256 * MIB  # of their pictures

# Of the process. The interpreter and its libraries take some 600 MB of it, a picture of 40 million pixels
# 320, and a model thrice its file.
ADDRESS_SPACE = 3072 * MIB
MODELS_KEPT = 3
THREADS = 2  # of one batch
# Of one batch: to load a model or to begin, and each picture. The largest picture takes a second.
BASE_S = 20
PICTURE_S = 2
LONGEST_S = 60  # for all that a request may ask for, with what is started anew on the way
IDLE_S = 600.0  # after which the process ends; the next request starts another
BATCH_PIXELS = 2**20  # that the network takes at once
THUMBNAIL = 96  # pixels along a side of a picture as the network sees it
