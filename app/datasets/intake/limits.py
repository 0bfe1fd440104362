"""Bounds of one import. Each is far above honest data and far below what hurts a worker of 512 MB."""

MIB = 1024 * 1024

MAX_PIXELS = 40_000_000  # per picture; a picture of this size takes 160 MB while it is decoded
# WebP and AVIF, whose decoders take four such copies and nearly as much; colours of 16 bits, decoded twice.
MAX_COSTLY_PIXELS = 24_000_000
MAX_MEMBER_BYTES = 64 * MIB  # one file of a zip, unpacked
MAX_MEMBERS = 300_000  # files in a zip; each takes about a kilobyte of memory while it is read
MAX_EXAMPLES = 5_000_000  # images in one dataset
MAX_SIDE = 8192  # pixels along a side of an npz image
MAX_CLASSES = 1000
MAX_NAME_LENGTH = 400  # characters of a path in a zip
MAX_CLASS_NAME_LENGTH = 80  # as long as a campaign can show it
MAX_LIST_BYTES = MIB  # a list of classes
MAX_TABLE_BYTES = 64 * MIB  # a CSV of file names

# Pictures are packed already, so an honest zip of them hardly shrinks; a plain BMP may shrink a lot, but not
# all of them.
MAX_RATIO = 200
RATIO_MATTERS_FROM = 8 * MIB  # unpacked; below this nothing can hurt

# Up to here a picture is kept without loss: everything that networks of this product train on is smaller, so
# training sees the very pixels that came. Above it a PNG of a photo takes half a megabyte and a phone waits
# for the next question.
LOSSLESS_PIXELS = 256 * 256
JPEG_QUALITY = 92
# Longest side that is kept; more does not help anybody to tell what is on a picture.
MAX_STORED_SIDE = 2048

SHARD_BYTES = 64 * MIB

# Of the process that reads the file. The interpreter and its libraries take about 200 MB of it. The largest
# picture takes 320 MB with one copy, and the file that it came from 64 MB.
MAX_ADDRESS_SPACE = 1024 * MIB
BASE_CPU_S = 600
CPU_S_PER_MIB = 5  # of the file; tiny pictures in an npz take about 1 s per MiB
