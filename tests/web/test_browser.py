"""The pages in a real browser, of a service with real processes, compared with what the API says.

`make test` takes the first of them, `make test-pages` all.
"""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest
from web.browsing import PagesService, Watched

from fairlead.web.live import POLL_S
from fairlead.web.stairs import OVERTAKEN, interval
from fairlead.web.viewer import COOKIE
from fairlead.wire.pages import ExpectedStart

pytestmark = [pytest.mark.thorough, pytest.mark.real, pytest.mark.timeout(300)]


def fill(service: PagesService) -> tuple[str, str]:
    """One job that has the whole machine, and one that waits for it."""
    runs = service.submit("sh", "-c", "echo it begins; sleep 100", name="runs", resources={"cpu": 4}, grace_ms=0)
    waits = service.submit("true", name="<b>waits</b>", resources={"cpu": 2}, queue="root.batch")
    return runs, waits


def clear(service: PagesService) -> None:
    for job in service.client.jobs(state=("waiting", "running", "suspended")):
        service.client.cancel(job.key, now=True)
    while any(service.client.jobs(state=("running", "stopping"))):
        time.sleep(0.05)


def test_the_line_shows_what_the_api_says_and_a_change_is_seen_at_once(service: PagesService, watched: Watched) -> None:
    page = watched.page
    page.get_by_text("Nothing waits.").wait_for()
    watched.check()
    runs, waits = fill(service)
    row = page.locator(f"tr[data-k='{waits}']")
    row.wait_for()
    told = service.client.line().line[0]
    assert told.reason is not None
    shown = row.inner_text()
    assert "<b>waits</b>" in shown, "a name is text"
    assert told.reason.sentence[1:] in shown
    assert str(told.effective) in shown
    page.locator(f".runs li[data-k='{runs}']").wait_for()
    took = []
    for priority in (3, 4, 5):
        begun = time.monotonic()
        service.client.change(waits, priority=priority)
        page.wait_for_function(
            "([k, p]) => document.querySelector(`tr[data-k='${k}'] .stairs .number`).textContent === p",
            arg=[waits, str(service.client.line().line[0].effective)],
        )
        took.append(time.monotonic() - begun)
    assert min(took) < POLL_S / 2, "it is told at once, not at the next look; `make bench-pages` measures how soon"
    watched.check()
    clear(service)


def test_a_job_says_why_it_waits_and_can_be_changed_from_its_page(service: PagesService, watched: Watched) -> None:
    page = watched.page
    runs, waits = fill(service)
    page.goto(f"{service.url}/job/{waits}")
    sentence = service.client.why(waits).sentence
    page.get_by_text(sentence[1:]).first.wait_for()
    page.locator("#p-why .expected, #p-why p.quiet").first.wait_for()
    watched.check()
    page.get_by_role("button", name="Find the smallest changes").click()
    page.locator(".way").first.wait_for()
    ways = service.client.why(waits, changes=True).verdict
    assert ways is not None
    assert ways.changes
    assert page.locator(".way").count() == len(ways.changes)

    page.locator("summary", has_text="Priority").click()
    page.get_by_label("New priority").fill("7")
    page.get_by_role("button", name="Change").first.click()
    page.locator("#say", has_text="Its priority is 7 now.").wait_for()
    assert service.client.job(waits).priority == 7
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Do it").click()
    page.locator("#p-head .state.cancelled").wait_for()
    assert service.client.job(waits).state == "cancelled"

    page.goto(f"{service.url}/job/{runs}")
    page.locator("#out-stdout", has_text="it begins").wait_for()
    watched.check()
    page.goto(f"{service.url}/job/999999")
    page.get_by_text("There is no job 999999 that you may see.").wait_for()
    assert page.locator(".panel").count() == 1, "it is said once"
    watched.check()
    clear(service)


@pytest.mark.slow
def test_a_job_is_changed_signalled_ended_at_once_and_its_failed_parts_run_again(
    service: PagesService, watched: Watched
) -> None:
    """What `update`, `signal`, `cancel --now` and `rerun --failed` do."""
    page = watched.page
    stubborn = "trap 'echo heard' USR1; trap '' TERM; while :; do sleep 0.1; done"
    runs = service.submit("sh", "-c", stubborn, resources={"cpu": 4}, grace_ms=600_000)
    waits = service.submit("true", name="small", resources={"cpu": 2, "memory": 2**30}, queue="root.batch")
    page.goto(f"{service.url}/job/{waits}")
    page.locator("summary", has_text="Change").click()
    watched.check()
    page.get_by_label("Cores").fill("1")
    page.get_by_label("Name").fill("smaller")
    page.locator("form[data-act='change']").get_by_role("button", name="Change").click()
    page.locator("#say", has_text="It is changed.").wait_for()
    job = service.client.job(waits)
    assert (job.name, job.resources) == ("smaller", {"cpu": 1, "memory": 2**30})
    service.client.cancel(waits)

    page.goto(f"{service.url}/job/{runs}")
    page.locator("summary", has_text="Signal").click()
    page.get_by_role("button", name="Send").click()
    page.locator("#out-stdout", has_text="heard").wait_for()
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Do it").click()
    page.get_by_role("button", name="End it now").click()
    page.get_by_role("button", name="Do it").click()
    page.locator("#p-head .state.cancelled").wait_for()
    watched.check()

    parts = service.submit("sh", "-c", "test $FAIRLEAD_ARRAY_INDEX = 1", array="1-3", resources={"cpu": 1})
    page.goto(f"{service.url}/job/{parts}")
    page.get_by_role("button", name="Run the failed parts again").click()
    page.wait_for_function("part => !location.pathname.endsWith(`/${part}`)", arg=parts)
    page.locator(".square").nth(1).wait_for()
    assert page.locator(".square").count() == 2
    clear(service)


@pytest.mark.slow
def test_a_forecast_that_is_overtaken_says_so_by_the_clock_of_the_browser(watched: Watched) -> None:
    """`earliest now, latest now` would be no answer."""
    page, now_ms = watched.page, time.time_ns() // 1_000_000
    at = ExpectedStart(key="1", median_ms=now_ms + 500, earliest_ms=now_ms, latest_ms=now_ms + 4_000)
    page.evaluate("html => fairlead.show('line', html)", str(interval(at, now_ms, 10_000)))
    page.get_by_text("any moment").wait_for()
    page.get_by_text("earliest now, latest in").wait_for()
    assert not page.get_by_text("expected by now").is_visible()
    page.get_by_text("expected by now").wait_for()
    page.get_by_text(OVERTAKEN).wait_for()
    assert not page.get_by_text("earliest now").is_visible()
    watched.check()


@pytest.mark.slow
def test_a_service_that_takes_long_is_said_and_asked_again(service: PagesService, watched: Watched) -> None:
    page = watched.page
    service.process.send_signal(signal.SIGSTOP)
    try:
        page.goto(f"{service.url}/queues")
        page.get_by_text("The service takes long to answer").wait_for()
        assert watched.findings() == []
    finally:
        service.process.send_signal(signal.SIGCONT)
    page.get_by_role("link", name="Try again").click()
    page.locator("tr[data-k='root.default']").wait_for()


@pytest.mark.slow
def test_a_browser_that_was_busy_keeps_its_page_and_what_was_typed(service: PagesService, watched: Watched) -> None:
    """It answers late whether it is still there: that is no reason to load the page anew."""
    page = watched.page
    page.goto(f"{service.url}/submit")
    page.get_by_label("Command").fill("half of a command")
    page.evaluate("() => { const begun = performance.now(); while (performance.now() - begun < 8000); }")
    page.wait_for_timeout(3000)
    assert page.get_by_label("Command").input_value() == "half of a command"
    page.get_by_label("Cores").fill("much")
    page.get_by_role("button", name="What if?").click()
    page.locator("#say.failed", has_text="cpu: 'much' is no amount").wait_for()
    watched.check()


def test_an_address_without_a_page_says_so_and_leads_on(service: PagesService, watched: Watched) -> None:
    page = watched.page
    page.goto(f"{service.url}/nowhere")
    page.get_by_text("There is no such page").wait_for()
    assert watched.findings() == []
    page.get_by_role("link", name="To the line").click()
    page.locator("#p-line").wait_for()


@pytest.mark.slow
def test_a_phone_and_the_dark_are_as_usable(service: PagesService, chromium: Any) -> None:
    fill(service)
    context = chromium.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
    watched = Watched(context.new_page(), service.url)
    page = watched.page
    page.goto(service.way_in())
    page.locator("tr[data-k]").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for link in page.locator("header nav a").all():
        box = link.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390, "every page can be reached without a hint"
    watched.check()
    context.close()
    clear(service)


def test_a_long_name_in_one_word_stays_within_the_page(service: PagesService, watched: Watched) -> None:
    """Beside the line it reached out of its panel, and made the page half as wide again."""
    key = service.submit("sleep", "100", name="x" * 120)
    watched.page.locator(f'#p-runs [data-k="{key}"]').wait_for()
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 1400
    clear(service)


def test_a_stranger_signs_in_with_a_token_and_out_again(service: PagesService, chromium: Any) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(service.url)
    page.get_by_text("Who are you?").wait_for()
    page.get_by_label("Or give a token").fill("fl_wrong")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("this token is not known").wait_for()
    token = service.client.create_token(name="for the pages").token
    page.get_by_label("Or give a token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.locator("#p-line").wait_for()
    [cookie] = [each for each in context.cookies() if each["name"].startswith(COOKIE)]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert 0 < cookie["expires"] - time.time() <= 12 * 3600 + 5
    assert token not in cookie["value"]
    page.get_by_role("button", name="Sign out").click()
    page.get_by_text("Who are you?").wait_for()
    assert not any(each["name"].startswith(COOKIE) for each in context.cookies())
    context.add_cookies([cookie])
    page.goto(f"{service.url}/line")
    page.get_by_text("Who are you?").wait_for()
    context.close()


def test_a_ticket_opens_the_pages_once(service: PagesService, chromium: Any) -> None:
    way_in = service.way_in()
    for opens in (True, False):
        context = chromium.new_context()
        page = context.new_page()
        page.goto(way_in)
        (page.locator("#p-line") if opens else page.get_by_text("the ticket was used")).wait_for()
        context.close()


@pytest.mark.slow
def test_now_shows_each_core_with_its_job_and_a_node_is_drained(service: PagesService, watched: Watched) -> None:
    page = watched.page
    runs = service.submit("sleep", "100", name="half", resources={"cpu": 2}, grace_ms=0, time_limit_ms=600_000)
    page.goto(f"{service.url}/now")
    page.locator(f".node li[data-k='{runs}']").wait_for()
    assert page.locator(".cells[aria-label='cpu: 2 squares of 4 in use'] .cell").count() == 4
    assert page.locator(".cells a.cell").count() == 2
    watched.check()
    page.get_by_role("button", name="Drain", exact=True).click()
    page.get_by_role("button", name="Do it").click()
    page.get_by_text("drained: takes no new work").wait_for()
    assert not next(iter(service.client.nodes())).schedulable
    page.get_by_role("button", name="Undrain").click()
    page.get_by_role("button", name="Drain", exact=True).wait_for()
    clear(service)


@pytest.mark.slow
def test_queues_show_what_each_uses_and_another_limit_is_supposed_not_done(
    service: PagesService, watched: Watched
) -> None:
    page = watched.page
    service.submit("sleep", "100", name="a", resources={"cpu": 2}, queue="root.batch", grace_ms=0)
    service.submit("sleep", "100", name="b", resources={"cpu": 4}, queue="root.batch", grace_ms=0)
    page.goto(f"{service.url}/queues")
    row = page.locator("tr[data-k='root.batch']")
    row.get_by_text("2 used, 4 asked for").wait_for()
    watched.check()
    before = service.client.config().text
    row.get_by_role("button", name="Try").click()
    slider = page.get_by_label("Maximum of cpu")
    slider.wait_for()
    slider.focus()
    slider.press("Home")
    page.locator("#p-try", has_text="If the queue file takes effect").wait_for()
    watched.check()
    assert service.client.config().text == before
    clear(service)


@pytest.mark.slow
def test_an_array_is_submitted_from_the_form_and_shown_as_squares(service: PagesService, watched: Watched) -> None:
    page = watched.page
    page.goto(f"{service.url}/submit")
    page.get_by_label("Command").fill("sh -c 'test $FAIRLEAD_ARRAY_INDEX != 2'")
    page.get_by_label("Array").fill("1-3")
    page.get_by_label("Directory").fill("/")
    page.get_by_label("Variables").fill("TOKEN=secret")
    page.get_by_label("Cores").fill("much")
    page.get_by_role("button", name="Submit", exact=True).click()
    page.locator("#say.failed", has_text="cpu: 'much' is no amount").wait_for()
    page.get_by_label("Cores").fill("1")
    page.get_by_role("button", name="What if?").click()
    page.locator("#p-answer", has_text="would start").wait_for()
    watched.check()
    page.locator("form[data-act='submit']:not([aria-busy])").wait_for()
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url("**/job/*")
    page.locator(".square.succeeded").nth(1).wait_for()
    page.locator(".square.failed").wait_for()
    assert page.locator(".square").count() == 3
    watched.check()
    page.goto(f"{service.url}/submit")
    page.wait_for_function("document.getElementById('f-array').value === '1-3'")
    assert "secret" not in page.evaluate("JSON.stringify({ ...localStorage })")
    # A queue that was asked for last and is no more: none was chosen then, and the job went where the rules put it.
    page.evaluate("localStorage.setItem('fairlead-submit', JSON.stringify([['queue', 'root.gone'], ['array', '7']]))")
    page.goto(f"{service.url}/submit")
    page.wait_for_function("document.getElementById('f-array').value === '7'")
    assert page.get_by_label("Queue").input_value() == "root.default"
    clear(service)


@pytest.mark.slow
def test_all_jobs_are_listed_the_newest_first_and_filtered_by_the_service(
    service: PagesService, watched: Watched
) -> None:
    page = watched.page
    keys = [service.submit("true", name=f"many-{number % 2}", hold=True) for number in range(60)]
    page.goto(f"{service.url}/jobs?name=many-*")
    rows = page.locator("#p-jobs tbody tr")
    rows.first.wait_for()
    assert [rows.nth(at).get_attribute("data-k") for at in (0, 49)] == [keys[-1], keys[-50]]
    assert rows.count() == 50
    watched.check()
    page.get_by_role("link", name="Older ones").click()
    page.locator(f"tr[data-k='{keys[0]}']").wait_for()
    assert rows.count() == 10
    page.get_by_label("Name").fill("many-1")
    page.get_by_label("State").select_option("waiting")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("30 jobs in all").wait_for()
    page.goto(f"{service.url}/jobs?queue=root.default&name=none")
    page.get_by_text("No job that you may see is like this.").wait_for()
    watched.check()
    for key in keys:
        service.client.cancel(key)


@pytest.mark.slow
def test_the_past_shows_who_was_stopped_for_whom(service: PagesService, watched: Watched) -> None:
    page = watched.page
    batch = service.submit("sleep", "100", name="long", resources={"cpu": 4}, queue="root.batch", grace_ms=0)
    while service.client.job(batch).state != "running":
        time.sleep(0.05)
    urgent = service.submit("sleep", "100", name="urgent", resources={"cpu": 4}, queue="root.interactive", grace_ms=0)
    while service.client.job(urgent).state != "running":
        time.sleep(0.05)
    page.goto(f"{service.url}/past?span=15m")
    page.locator(f".gantt a[href='/job/{urgent}'] rect").first.wait_for(state="attached")
    assert page.locator(".gantt .arc").count() >= 1
    assert page.locator(f".gantt a[href='/job/{batch}'] rect.evicted").count() == 1
    watched.check()
    slider = page.get_by_label("Moment")
    slider.focus()
    slider.press("ArrowLeft")
    page.locator("#p-at", has_text=" waited.").wait_for()
    watched.check()
    clear(service)


@pytest.mark.slow
def test_the_queue_file_is_compared_then_put_in_force_and_put_back(service: PagesService, watched: Watched) -> None:
    page = watched.page
    page.goto(f"{service.url}/policy")
    before = service.client.config()
    editor = page.get_by_label("queues.yaml")
    editor.fill(before.text.replace("- name: idle", "- nam: idle"))
    page.get_by_role("button", name="Compare with what is in force").click()
    page.locator("#p-answer button[data-line]").first.wait_for()
    watched.check()
    page.locator("form[data-act='compare']:not([aria-busy])").wait_for()
    editor.fill(before.text.replace('priority.offset: "100"', 'priority.offset: "90"'))
    page.get_by_role("button", name="Compare with what is in force").click()
    page.locator("#p-answer", has_text="root.interactive changes").wait_for()
    assert service.client.config().version == before.version, "comparing changes nothing"
    page.get_by_role("button", name="Try it on the last day").click()
    told = service.client.compare_config(text=editor.input_value(), days=1)
    page.locator("#p-past", has_text=told.sentences[0]).wait_for()
    page.locator("#p-past", has_text="that ran or waited since").wait_for()
    watched.check()
    assert service.client.config().version == before.version
    page.get_by_role("button", name="Put it in force").click()
    page.get_by_role("button", name="Do it").click()
    page.locator("#p-history tr", has_text="api").wait_for()
    assert 'priority.offset: "90"' in service.client.config().text
    watched.check()
    page.locator(f"#p-history tr[data-k='{before.version}']").get_by_role("button", name="Put back").click()
    page.get_by_role("button", name="Do it").click()
    page.locator("#p-history tr", has_text="rollback").wait_for()
    assert service.client.config().text == before.text
