"""`fairlead.local.owned_jobs`: the jobs of each user are those of the book that it owns."""

from __future__ import annotations

import random

from unit.local.test_jobs import spec

from fairlead.local.history_records import JobCancelRequested, JobsCleaned, JobSubmitted
from fairlead.local.job import Job
from fairlead.local.jobs import Jobs
from fairlead.local.owned_jobs import OwnedJobs


def test_they_are_those_that_a_look_at_all_finds() -> None:
    """Whatever came and went, in the same order; nothing is kept of users without jobs."""
    dice, jobs, number = random.Random(1), OwnedJobs(), 0
    for _ in range(2_000):
        if jobs and dice.random() < 0.5:
            del jobs[dice.choice(list(jobs))]
        else:
            number += 1
            jobs[str(number)] = Job(spec(str(number), uid=dice.randrange(5)), 0, 0)
        for uid in range(5):
            assert list(jobs.of(uid)) == [job for job in jobs.values() if job.spec.uid == uid]
        assert set(jobs._of) == {job.spec.uid for job in jobs.values()}


def test_the_book_knows_those_of_a_user() -> None:
    """All of them, those that wait or run, and the same from a snapshot; what left the book is gone."""
    book = Jobs()
    for number in range(1, 7):
        book.apply(JobSubmitted(job=spec(str(number), uid=1000 + number % 2)), number)
    book.apply(JobCancelRequested(key="2", who="ada"), 10)
    for each in (book, Jobs.load(book.dump())):
        assert [job.key for job in each.of_user(1000)] == ["2", "4", "6"]
        assert [job.key for job in each.live_of_user(1000)] == ["4", "6"]
        assert list(each.of_user(5)) == []
    book.apply(JobsCleaned(before_ms=11), 12)
    assert [job.key for job in book.of_user(1000)] == ["4", "6"]
