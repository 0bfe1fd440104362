"""Members of campaigns, groups, outside workers, erasing people. The door of this package."""

from app.members.admitting import (
    Members,
    ShownGroup,
    add_group,
    add_member,
    find_group,
    members,
    remove_group,
    remove_member,
    set_admission,
)
from app.members.erasing import erase_person
from app.members.groups import add_person, delete_group, list_groups, make_group, people_of, remove_person
from app.members.workers import (
    Completion,
    ShownWorker,
    completion,
    end_link,
    find_link,
    join,
    join_url,
    links_of,
    make_link,
    worker_id_of,
    workers_of,
)

__all__ = [
    "Completion",
    "Members",
    "ShownGroup",
    "ShownWorker",
    "add_group",
    "add_member",
    "add_person",
    "completion",
    "delete_group",
    "end_link",
    "erase_person",
    "find_group",
    "find_link",
    "join",
    "join_url",
    "links_of",
    "list_groups",
    "make_group",
    "make_link",
    "members",
    "people_of",
    "remove_group",
    "remove_member",
    "remove_person",
    "set_admission",
    "worker_id_of",
    "workers_of",
]
