"""Documents that could take much time, memory or stack; as a script, reads each of them with little of each."""

import os
import resource
import sys

import screwdyn as sd

MANY = 5_000
KNOWN = '{"format": "screwdyn tree", "version": 1'


def many(template):
    """The text, with N for a number, many times."""
    return (template.replace("N", str(k)) for k in range(MANY))


def robot(parts):
    return f"<robot>{''.join(parts)}</robot>"


ENDS = '<joint name="jN" type="fixed"><parent link="{}"/><child link="{}"/></joint>'
ENTITIES = "".join(f'<!ENTITY a{k + 1} "{f"&a{k};" * 100}">' for k in range(20))
DOCUMENTS = {
    "nested elements": lambda: "<robot>" + "<a>" * 200_000,
    "nested links": lambda: "<robot>" + '<link name="a">' * 100_000,
    "unknown parents": lambda: robot(many('<link name="lN"/>' + ENDS.format("pN", "lN"))),
    "links without a parent": lambda: robot(many('<link name="lN"/>')),
    "wrong shapes": lambda: robot(
        many('<link name="lN"><visual><geometry><mesh filename="N" scale="0 N"/></geometry></visual></link>')
    ),
    "a large cycle": lambda: robot(
        f'<link name="{k}"/>' + ENDS.replace("N", str(k)).format(k, (k + 1) % MANY) for k in range(MANY)
    ),
    "many digits": lambda: robot([f'<link name="a"><inertial><mass value="{"9" * 1_000_000}x"/></inertial></link>']),
    "entities": lambda: f'<!DOCTYPE r [<!ENTITY a0 "x">{ENTITIES}]><robot>&a20;</robot>',
    "nested lists": lambda: '{"a":' + "[" * 500_000,
    "nested objects": lambda: '{"a":' * 200_000,
    "repeated keys": lambda: KNOWN + "".join(many(', "kN": 1, "kN": 1')) + "}",
    "unknown keys": lambda: KNOWN + "".join(many(', "kN": 1')) + "}",
    "a long number": lambda: KNOWN + ', "gravity": ' + "9" * 1_000_000 + "}",
    "a long sum": lambda: KNOWN + ', "gravity": [0, 0, "' + "x+" * 49_000 + 'x"]}',
    "a tower of powers": lambda: KNOWN + ', "gravity": [0, 0, "' + "9**" * 90 + '9"]}',
    "wrong links": lambda: KNOWN + ', "links": [' + ", ".join(many('{"nam": N}')) + "]}",
}


def main(name):
    """Exit normally if the document is refused with a message that is not much longer than the document."""
    text = DOCUMENTS[name]()
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))
    read = sd.KinematicTree.from_json if text.startswith("{") else sd.KinematicTree.from_urdf
    try:
        read(text)
    except (sd.URDFError, sd.JSONError) as error:
        assert len(str(error)) < 20 * (len(text) + 1000)
        return
    raise AssertionError("the document was read")


if __name__ == "__main__":
    # Each in a process of its own, which has imported the library already.
    for name in DOCUMENTS:
        child = os.fork()
        if not child:
            main(name)
            sys.exit()
        if status := os.waitpid(child, 0)[1]:
            sys.exit(f"{name}: status {status}")
