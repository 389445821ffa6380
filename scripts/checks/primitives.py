"""The hashes and ciphers that the specification refers to, for scripts/checks/vectors.

They are written for readability: slow, not in constant time, and limited to what the vectors need.
"""

import functools
import hashlib
import hmac
import math
import struct

M32, M64 = 2**32 - 1, 2**64 - 1


def be(size, number):
    """A number as big-endian bytes (1)."""
    return number.to_bytes(size, "big")


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def multiply(a, b, modulus):
    """The product of two polynomials over GF(2), modulo a third one of degree 8."""
    product = 0
    while b:
        if b & 1:
            product ^= a
        a, b = a << 1, b >> 1
        if a & 256:
            a ^= modulus
    return product


@functools.lru_cache(None)
def inverse(a, modulus):
    """The one of GF(2^8); of 0 it is 0, as AES has it."""
    return next((b for b in range(256) if multiply(a, b, modulus) == 1), 0)


# BLAKE3, of inputs of one chunk.
BLAKE3_IV = [
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
]  # fmt: skip
BLAKE3_ORDER = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
BLAKE3_MIXED = [
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
]  # fmt: skip
CHUNK_START, CHUNK_END, ROOT, KEYED_HASH, DERIVE_CONTEXT, DERIVE_INPUT = 1, 2, 8, 16, 32, 64


def rotate_right(word, bits):
    return (word >> bits | word << (32 - bits)) & M32


def blake3_compress(chain, block, counter, flags):
    words = struct.unpack("<16I", block.ljust(64, b"\0"))
    state = [*chain, *BLAKE3_IV[:4], counter, 0, len(block), flags]
    for _ in range(7):
        for i, (a, b, c, d) in enumerate(BLAKE3_MIXED):
            for word, first, second in (words[2 * i], 16, 12), (words[2 * i + 1], 8, 7):
                state[a] = (state[a] + state[b] + word) & M32
                state[d] = rotate_right(state[d] ^ state[a], first)
                state[c] = (state[c] + state[d]) & M32
                state[b] = rotate_right(state[b] ^ state[c], second)
        words = [words[i] for i in BLAKE3_ORDER]
    return [x ^ y for x, y in zip(state, [*state[8:], *chain])]


def blake3(key, mode, data, length):
    assert len(data) <= 1024, "BLAKE3 of more than one chunk"
    *blocks, last = [data[i : i + 64] for i in range(0, len(data), 64)] or [b""]
    chain, flags = key, mode | CHUNK_START
    for block in blocks:
        chain, flags = blake3_compress(chain, block, 0, flags)[:8], mode
    output = [blake3_compress(chain, last, i, flags | CHUNK_END | ROOT) for i in range(length // 64 + 1)]
    return b"".join(struct.pack("<16I", *words) for words in output)[:length]


def derive(context, data, length=32):
    key = blake3(BLAKE3_IV, DERIVE_CONTEXT, context.encode(), 32)
    return blake3(struct.unpack("<8I", key), DERIVE_INPUT, data, length)


def keyed(key, data):
    return blake3(struct.unpack("<8I", key), KEYED_HASH, data, 32)


# XXH3 of 128 bits with a seed. Each range of lengths has a way of its own; this is that of 9 to 16 bytes.
# Bytes 32 to 63 of its secret.
XXH3_SECRET = "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
XXH_PRIME32_2, XXH_PRIME64_1, XXH_PRIME64_2 = 0x85EBCA77, 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F


def xxh3_avalanche(x):
    x = (x ^ x >> 37) * 0x165667919E3779F9 & M64
    return x ^ x >> 32


def xxh128(seed, data):
    assert 9 <= len(data) <= 16, "XXH3 of another length than 9 to 16 bytes"
    a, b, c, d = struct.unpack("<4Q", bytes.fromhex(XXH3_SECRET))
    (first,), (last,) = struct.unpack("<Q", data[:8]), struct.unpack("<Q", data[-8:])
    product = (first ^ last ^ (a ^ b) - seed & M64) * XXH_PRIME64_1
    low, high = product + (len(data) - 1 << 54) & M64, product >> 64
    last ^= (c ^ d) + seed & M64
    high = high + last + (last & M32) * (XXH_PRIME32_2 - 1) & M64
    product = (low ^ int.from_bytes(be(8, high), "little")) * XXH_PRIME64_2
    high = (product >> 64) + high * XXH_PRIME64_2 & M64
    return be(8, xxh3_avalanche(high)) + be(8, xxh3_avalanche(product & M64))


# AES-128 and AES-256 (FIPS 197) in GCM (SP 800-38D).
def aes_substitute(data):
    return bytes(multiply(inverse(byte, 0x11B), 0x1F, 0x101) ^ 0x63 for byte in data)


def aes_round_keys(key):
    words, size, constant = [key[i : i + 4] for i in range(0, len(key), 4)], len(key) // 4, 1
    for i in range(size, 4 * (size + 7)):
        word = words[-1]
        if i % size == 0:
            word = xor(aes_substitute(word[1:] + word[:1]), be(1, constant) + bytes(3))
            constant = multiply(constant, 2, 0x11B)
        elif size == 8 and i % size == 4:
            word = aes_substitute(word)
        words.append(xor(word, words[-size]))
    return [b"".join(words[i : i + 4]) for i in range(0, len(words), 4)]


def aes_mix(column):
    rotated = [column[i:] + column[:i] for i in range(4)]
    return bytes(multiply(a, 2, 0x11B) ^ multiply(b, 3, 0x11B) ^ c ^ d for a, b, c, d in rotated)


def aes(round_keys, block):
    state = xor(block, round_keys[0])
    for key in round_keys[1:]:
        state = aes_substitute(state[5 * i % 16] for i in range(16))
        if key is not round_keys[-1]:
            state = b"".join(aes_mix(state[i : i + 4]) for i in range(0, 16, 4))
        state = xor(state, key)
    return state


def ghash(h, data):
    hash_ = 0
    for at in range(0, len(data), 16):
        hash_ ^= int.from_bytes(data[at : at + 16], "big")
        product, power = 0, h
        for bit in range(127, -1, -1):
            product ^= power * (hash_ >> bit & 1)
            power = power >> 1 ^ (power & 1) * (0xE1 << 120)
        hash_ = product
    return be(16, hash_)


def aes_gcm(key, nonce, additional, plaintext):
    """The ciphertext and the tag."""
    round_keys = aes_round_keys(key)
    stream = [aes(round_keys, nonce + be(4, i)) for i in range(1, 2 + math.ceil(len(plaintext) / 16))]
    ciphertext = xor(plaintext, b"".join(stream[1:]))
    padded = [part + bytes(-len(part) % 16) for part in (additional, ciphertext)]
    lengths = be(8, 8 * len(additional)) + be(8, 8 * len(ciphertext))
    h = int.from_bytes(aes(round_keys, bytes(16)), "big")
    return ciphertext + xor(ghash(h, b"".join(padded) + lengths), stream[0])


# X25519 (RFC 7748).
def x25519(secret, point):
    p, x1 = 2**255 - 19, int.from_bytes(point, "little") % 2**255
    scalar = int.from_bytes(secret, "little") & ~7 & 2**254 - 1 | 2**254
    x2, z2, x3, z3 = 1, 0, x1, 1
    for bit in range(254, -1, -1):
        swap = scalar >> bit & 1
        if swap:
            x2, z2, x3, z3 = x3, z3, x2, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % p, b * b % p, d * a % p, c * b % p
        x3, z3 = (da + cb) ** 2 % p, x1 * (da - cb) ** 2 % p
        x2, z2 = aa * bb % p, (aa - bb) * (aa + 121665 * (aa - bb)) % p
        if swap:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return (x2 * pow(z2, p - 2, p) % p).to_bytes(32, "little")


def x25519_public(secret):
    return x25519(secret, (9).to_bytes(32, "little"))


# A handshake of the Noise Protocol Framework, revision 34.
class Noise:
    def __init__(self, name, prologue):
        assert len(name) == 32, "another length would have to be padded or hashed"
        self.hash = self.chain = name
        self.mix_hash(prologue)

    def mix_hash(self, data):
        self.hash = hashlib.sha256(self.hash + data).digest()

    def outputs(self, data, count):
        """HKDF under the chaining key."""
        secret, output, outputs = hmac.digest(self.chain, data, "sha256"), b"", []
        for i in range(1, count + 1):
            output = hmac.digest(secret, output + be(1, i), "sha256")
            outputs.append(output)
        return outputs

    def mix_key(self, data):
        self.chain, self.key = self.outputs(data, 2)

    def mix_key_and_hash(self, data):
        self.chain, mixed, self.key = self.outputs(data, 3)
        self.mix_hash(mixed)

    def ephemeral(self, public):
        self.mix_hash(public)
        self.mix_key(public)

    def seal(self, payload):
        sealed = aes_gcm(self.key, bytes(12), self.hash, payload)  # The first under each key.
        self.mix_hash(sealed)
        return sealed
