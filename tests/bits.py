"""Prints a digest of the bits of every quantity of some robots: ``python tests/bits.py``."""

import hashlib

import numpy as np

import screwdyn as sd
from screwdyn.physics.quantities import ARGUMENTS, CATALOGUE
from screwdyn.testing import KINDS, random_tree


def main():
    """The robots of the library, and random trees with all kinds of joints."""
    robots = [sd.robots.ur5(), *(random_tree(np.random.default_rng(seed), 6, tuple(KINDS)) for seed in range(4))]
    digest, count = hashlib.sha256(), 0
    for tree in robots:
        rng = np.random.default_rng(tree.nv)
        state = {"q": tree.integrate(tree.neutral(), rng.normal(size=tree.nv))}
        state |= {name: rng.normal(size=tree.nv) for name in ARGUMENTS[1:]}
        for entry in CATALOGUE.values():
            if entry.places in (None, "all") and {*entry.arguments} <= {*state}:
                found = getattr(tree, entry.name)(*(state[x] for x in entry.arguments))
                for result in found if isinstance(found, tuple) else (found,):
                    if isinstance(result, np.ndarray | float):
                        digest.update(np.ascontiguousarray(result).tobytes())
                        count += 1
    print(count, digest.hexdigest())


if __name__ == "__main__":
    main()
