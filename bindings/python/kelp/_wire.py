# SPDX-License-Identifier: Apache-2.0
"""Protobuf's wire format, enough to read and change messages. Source: protobuf.dev, "Encoding"."""

VARINT, I64, LEN, I32 = 0, 1, 2, 5


def varint_at(data, at):
    """Returns a varint and the position after it. Raises ValueError if it is truncated."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("malformed: truncated number")


def fields(data):
    """Yields (number, value, field) of a message: value is an int or a memoryview, `field` the bytes of the field with its tag."""
    at, data = 0, memoryview(data)
    while at < len(data):
        begin = at
        tag, at = varint_at(data, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = varint_at(data, at)
        else:
            if kind == LEN:
                size, at = varint_at(data, at)
            elif kind in (I64, I32):
                size = 8 if kind == I64 else 4
            else:
                raise ValueError("malformed: unknown kind of field")
            value, at = data[at:at + size], at + size
            if at > len(data):
                raise ValueError("malformed: truncated field")
        yield tag >> 3, value, data[begin:at]


def signed(value):
    """Returns the int64 of a varint."""
    return value - (1 << 64) if value >> 63 else value


def text(value):
    """Returns a string field."""
    return bytes(value).decode("utf-8", "replace")


def get(data, number, default=None):
    """Returns the last field of this number."""
    for found, value, _ in fields(data):
        if found == number:
            default = value
    return default


def varint(value):
    """Returns the bytes of a varint."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(number, value):
    """Returns an integer field."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number, *parts):
    """Returns the parts of a field of bytes, or of a message."""
    return [varint(number << 3 | LEN) + varint(sum(len(part) for part in parts)), *parts]


def text_field(number, value):
    """Returns a string field."""
    return b"".join(bytes_field(number, value.encode()))
