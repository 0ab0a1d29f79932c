"""Names in a queue file that this machine does not know."""

from __future__ import annotations

from fairlead.config import usable
from fairlead.local.unknown_accounts import unknown_accounts

TEXT = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: a
            submitacl: root,nobody-here nogrouphere
            adminacl: nobody-here
            limits:
              - limit: some
                users: [nobody-here, "*"]
                groups: [another-one-missing]
                maxapplications: 3
"""


def test_each_is_said_once_with_where_it_stands() -> None:
    """What is known, and a star, are no news."""
    assert unknown_accounts(usable(TEXT)) == [
        "this machine has no user 'nobody-here', which submitacl of root.a and adminacl of root.a and 1 more names: "
        "it lets nobody in",
        "this machine has no group 'nogrouphere', which submitacl of root.a names: it lets nobody in",
        "this machine has no group 'another-one-missing', which a limit of root.a names: it lets nobody in",
    ]


def test_a_file_with_known_names_alone_is_fine() -> None:
    text = "partitions: [{name: default, queues: [{name: root, submitacl: 'root root'}]}]"
    assert unknown_accounts(usable(text)) == []
