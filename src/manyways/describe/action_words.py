"""What a plan does, in words: "repairs" for the action `repair`, "goes left" for `left` and `go_left`, "takes 'b7'" for `b7`.

Names of actions are arbitrary. A name is made into a verb only if its first word is known to be one; "lefts" and "slows" are
worse than "takes 'left'".
"""

from __future__ import annotations

import re

from manyways.describe.wording import joined, quoted, short
from manyways.model.closures import DIRECTIONS as MOVES

VERB_LIST = """
accelerate accept add adjust advance approach ask assign attack attend avoid bet bike block boil book brake break
bring build buy call cancel carry catch change charge check choose clean climb close collect come connect continue cook
copy cover cross cut decelerate decrease defend delay deliver deny detour discharge dispatch do dock drain draw drill drink
drive drop eat empty end enter escape exit explore extend feed fetch fight fill find finish fix flip fly fold follow forward
fuel gamble get give go grab hire hold idle increase inject inspect invest jump keep kick land launch lay leave lend
lift light listen load lock look lower maintain make measure meet mend merge mix move notify observe offer open operate
order overtake pack paint park pass pause pay pick place plan plant play plug pop post press print produce promote protect
pull pump purchase push put queue raise read rebuild recharge reduce refill refuel reject release reload remove rent
repair replace report request reset resign rest restart restock retreat retry return ride rise roll rotate run sail save
scan search sell send serve set shift ship shoot shut sign skip sleep slow speed spend spin split stand start stay steer
step stop store strip study submit supply swap swim switch take teach test throw toggle toss tow track train transfer
transmit travel treat trigger try turn unload unlock unplug update upgrade use visit wait wake walk warn wash watch water
weigh weld withdraw work write
"""
VERBS = frozenset(VERB_LIST.split())
THING_LIST = """
board boat book dock drill fuel land light lock paint plant plug post press pump ship sign tow track train water
"""
THINGS = frozenset(THING_LIST.split())
"""Verbs that, alone, are more often the name of a thing: "takes 'train'" instead of "trains"."""

DIRECTIONS = MOVES | frozenset(("straight", "ahead", "home", "away", "upstream", "downstream"))
NOTHING = frozenset(("noop", "no-op", "no op", "nop", "none", "null", "nothing", "do nothing"))
IRREGULAR = {"do": "does", "go": "goes"}


def does(action: str) -> str:
    """What a plan does that takes an action, in the third person."""
    parts = action.split("+")
    if len(parts) > 1 and all(_known(part) for part in parts):
        return joined([_known(part) or part for part in parts])
    plain = short(action).strip("[]<>() ")
    if re.fullmatch(r"[0-9]+", plain):
        return f"takes action {plain}"
    return _known(action) or f"takes {quoted(action)}"


def _known(action: str) -> str | None:
    """The words for an action whose first word is a verb or a direction; None for others."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", short(action).strip("[]<> ")).replace("_", " ").strip()
    text = re.sub(r"^([^()]+)\(([^()]*)\)$", lambda call: f"{call[1]} {call[2]}".strip(), text)
    if text.lower() in NOTHING:
        return "does nothing"
    first, blank, rest = text.partition(" ")
    if first.lower() in VERBS and (rest or first.lower() not in THINGS):
        return f"{third_person(first.lower())}{blank}{rest}"
    if all(word in DIRECTIONS for word in re.split(r"[ -]", text.lower())):
        return f"goes {text.lower()}"
    return None


def third_person(verb: str) -> str:
    """ "repairs", "goes", "tries", "fixes"."""
    if verb in IRREGULAR:
        return IRREGULAR[verb]
    if re.search(r"[^aeiou]y$", verb):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if re.search(r"(s|x|z|ch|sh|o)$", verb) else f"{verb}s"
