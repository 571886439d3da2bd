"""The page in a real Chromium: every room, a drag, keys, a typed formula and a wrong one, a phone."""

import json
import os
import re
import shutil
import threading
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

from mercer import SVC, Gaussian, Polynomial, certify
from mercer.lab.server import Lab

pytestmark = pytest.mark.browser
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.fail("no chromium: install it (Debian: apt-get install chromium), or name one in CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def lab():
    with Lab() as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class Visit:
    """A page of the lab, and what it said of mistakes."""

    def __init__(self, page, lab):
        self.page, self.lab, self.room = page, lab, ""
        self.mistakes, self.elsewhere, self.answered = [], [], []
        page.on("pageerror", lambda error: self.mistakes.append(str(error)))
        page.on("console", self._said)
        page.on("request", self._asked)
        page.on("response", self._answered)

    def _said(self, message):
        is_refusal = "422" in message.text  # The browser tells of each answer that is no.
        if message.type in ("error", "warning") and not is_refusal:
            self.mistakes.append(message.text)

    def _asked(self, request):
        if not request.url.startswith((self.lab.url, "data:", "blob:")):
            self.elsewhere.append(request.url)

    def _answered(self, response):
        if response.url.endswith(f"/room/{self.room}"):
            self.answered.append(response)

    def enter(self, room):
        self.room = room
        self.page.goto(f"{self.lab.url}#{room}")
        self.page.reload()
        self.page.wait_for_selector("#code pre:not(:empty)", state="attached")

    def settle(self):
        self.page.wait_for_selector("body[data-state=quiet]")

    def after(self, act):
        """The last request to this room, and its answer, when all that was done is answered."""
        self.settle()
        self.answered.clear()
        act()
        self.settle()
        response = self.answered[-1]
        return json.loads(response.request.post_data), response.json()

    def asked_after(self, act):
        return self.after(act)[0]

    def answer_after(self, act):
        return self.after(act)[1]

    def type_kernel(self, text):
        return self.answer_after(lambda: self.page.fill("#kernel", text))

    def code(self):
        return self.page.locator("#code pre").text_content()

    def facts(self):
        rows = self.page.locator("#facts > div")
        texts = [
            [part.strip() for part in rows.nth(i).locator("dt, dd").all_text_contents()]
            for i in range(rows.count())
        ]
        return {text[0]: text[1] for text in texts}


@pytest.fixture
def open_page(chromium, lab):
    @contextmanager
    def opened(**options):
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(60_000)
        visit = Visit(context.new_page(), lab)
        yield visit
        context.close()
        assert visit.mistakes == [] and visit.elsewhere == []

    return opened


ROOMS = {
    "classify": ("Gram matrix", "margin 2/‖f‖"),
    "curve": ("Eigenvalues of the Gram matrix", "leave-one-out error"),
    "certify": ("k(0, x) along the first axis", None),
    "perceptron": ("after j mistakes", "bound on the mistakes"),
    "features": ("Variance in each component", "variance in the first two"),
    "spectrum": ("v(ω), the Fourier transform", "least value"),
}


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_shows_what_it_is_for(open_page, room):
    with open_page() as visit:
        visit.enter(room)
        text, fact = ROOMS[room]
        visit.page.get_by_text(text).first.wait_for()
        if fact:
            assert fact in visit.facts()
        visit.page.wait_for_selector("#certificate .verdict.proved")
        exec(compile(visit.code(), "the code on screen", "exec"), {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("room", ROOMS)
def test_nothing_is_cut_off_on_a_phone(open_page, room, scheme):
    with open_page(viewport={"width": 390, "height": 844}, color_scheme=scheme, has_touch=True) as visit:
        visit.enter(room)
        visit.page.wait_for_selector("#certificate .verdict")
        assert visit.page.evaluate("document.documentElement.scrollWidth") == 390
        svg = visit.page.locator("#plane svg, #second svg").first.bounding_box()
        assert svg["x"] >= 0 and svg["x"] + svg["width"] <= 390 and svg["width"] > 330
        dark = visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
        assert dark == (scheme == "dark")


def test_a_click_adds_a_point_and_a_drag_moves_it(open_page):
    with open_page() as visit:
        visit.enter("perceptron")  # XOR
        box = visit.page.locator("#plane .frame").bounding_box()

        def place(x, y):
            return box["x"] + (x + 3) / 6 * box["width"], box["y"] + (3 - y) / 6 * box["height"]

        asked = visit.asked_after(lambda: visit.page.mouse.click(*place(2, 0.5)))
        assert len(asked["points"]) == 5 and np.allclose(asked["points"][4], [2, 0.5, 1], atol=0.02)
        visit.page.mouse.move(*place(2, 0.5))
        visit.page.mouse.down()
        visit.page.mouse.move(*place(0, 2), steps=4)
        asked = visit.asked_after(visit.page.mouse.up)
        assert np.allclose(asked["points"][4], [0, 2, 1], atol=0.03)
        visit.page.locator("#status").get_by_text(re.compile(r"^point 5 of 5, \(")).wait_for()
        asked = visit.asked_after(lambda: visit.page.locator("#flip").click())
        assert np.allclose(asked["points"][4], [0, 2, -1], atol=0.03)
        asked = visit.asked_after(lambda: visit.page.locator("#remove").click())
        assert asked["points"] == [[1, 1, 1], [-1, 1, -1], [-1, -1, 1], [1, -1, -1]]


def test_points_are_chosen_and_moved_by_keys(open_page):
    with open_page() as visit:
        visit.enter("perceptron")
        press = visit.page.keyboard.press
        visit.page.locator("#plane svg").focus()
        press("n")
        press("n")
        assert visit.page.locator("#status").text_content().startswith("point 2 of 4")
        asked = visit.asked_after(lambda: press("ArrowRight"))
        assert asked["points"][1] == [-0.94, 1, -1]  # a hundredth of the width
        asked = visit.asked_after(lambda: press("Shift+ArrowDown"))
        assert asked["points"][1] == [-0.94, 0.7, -1]
        assert visit.asked_after(lambda: press("f"))["points"][1][2] == 1
        assert visit.asked_after(lambda: press("a"))["points"][4][:2] == [0, 0]
        assert len(visit.asked_after(lambda: press("Delete"))["points"]) == 4
        visit.page.locator("[role=tab][aria-selected=true]").focus()
        press("ArrowRight")
        visit.page.wait_for_selector("[data-room=features][aria-selected=true]")


def test_a_typed_formula_and_a_slider(open_page):
    with open_page() as visit:
        visit.enter("classify")
        asked, found = visit.after(lambda: visit.page.fill("#kernel", "2*gaussian(0.5) + polynomial(2)"))
        points = np.array(asked["points"])
        model = SVC(kernel=2 * Gaussian(sigma=0.5) + Polynomial(2)).fit(points[:, :2], points[:, 2])
        assert np.allclose(found["values"], model.decision_function(points[:, :2]), atol=1e-4)
        visit.page.wait_for_selector("#k-k2__degree")
        found = visit.answer_after(lambda: visit.page.locator("#k-k2__degree").press("ArrowRight"))
        assert found["kernel"]["text"] == "2 * Gaussian(sigma=0.5) + Polynomial(degree=3, c=1.0)"
        assert visit.page.input_value("#kernel") == found["kernel"]["text"]
        found = visit.type_kernel("exp(-r)")
        assert found["kernel"]["resolved"] == "φ(‖x - x'‖), φ = exp(-r)"
        visit.page.wait_for_selector("#certificate .proved")


def test_a_wrong_formula_is_answered_by_a_sentence(open_page):
    with open_page() as visit:
        visit.enter("classify")
        visit.type_kernel("gausian(1)")
        error = visit.page.locator("#error")
        error.get_by_text("did you mean 'gaussian'?").wait_for()
        assert "^^^^^^^" in error.locator("pre").text_content()
        assert visit.page.get_attribute("#kernel", "aria-invalid") == "true"
        visit.type_kernel("alert(r)")
        error.get_by_text("there is no function 'alert'").wait_for()
        visit.type_kernel("gaussian(1)")
        error.wait_for(state="hidden")


def test_a_question_with_a_witness(open_page):
    with open_page() as visit:
        visit.enter("certify")
        visit.page.locator("#s-dim").focus()
        visit.answer_after(lambda: visit.page.keyboard.press("ArrowRight"))
        visit.answer_after(lambda: visit.page.keyboard.press("ArrowRight"))
        visit.page.wait_for_selector("#certificate .refuted")
        reason = certify("max(1 - r, 0)", dim=2).reason
        assert reason in visit.page.locator("#certificate").text_content()
        assert visit.page.locator("#certificate tbody tr").count() == 12


def test_the_perceptron_walks(open_page):
    with open_page() as visit:
        visit.enter("perceptron")
        found = visit.answer_after(lambda: visit.page.locator("#start").click())
        assert found["step"] == 0
        found = visit.answer_after(lambda: visit.page.locator("#forward").click())
        assert (found["step"], found["visited"], found["alpha"]) == (1, 0, [1, 0, 0, 0])
        found = visit.answer_after(lambda: visit.page.locator("#mistake").click())
        assert found["visits"]["mistake"][found["step"] - 1]


def test_each_room_has_its_example_and_changed_points_go_along(open_page):
    with open_page() as visit:
        visit.enter("classify")

        def points_of(room):
            visit.room = room
            return visit.asked_after(lambda: visit.page.locator(f"[data-room={room}]").click())["points"]

        example = visit.page.locator("#example")
        assert len(points_of("perceptron")) == 4 and example.input_value() == "xor"
        assert len(points_of("features")) == 40 and example.input_value() == "circles"
        assert len(points_of("perceptron")) == 4 and example.input_value() == "xor"
        visit.page.locator("#plane svg").focus()
        visit.asked_after(lambda: visit.page.keyboard.press("a"))
        assert len(points_of("features")) == 5


def test_a_table_is_loaded_and_pictures_and_code_are_saved(open_page, tmp_path):
    with open_page(accept_downloads=True) as visit:
        visit.enter("classify")
        table = {"name": "t.csv", "mimeType": "text/csv", "buffer": b"x,y,kind\n0,0,a\n10,10,b\n0,10,b\n"}
        asked = visit.asked_after(lambda: visit.page.set_input_files("#file", table))
        assert asked["points"] == [[0, 0, -1], [10, 10, 1], [0, 10, 1]] and asked["box"][1] > 10
        visit.page.wait_for_selector("#plane .level")
        saved = {}
        for button in ("png", "svg", "python"):
            with visit.page.expect_download() as met:
                visit.page.click(f"#{button}")
            saved[button] = tmp_path / met.value.suggested_filename
            met.value.save_as(saved[button])
        assert saved["png"].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and saved["png"].stat().st_size > 10_000
        svg = saved["svg"].read_text("utf-8")
        assert svg.startswith("<svg") and "class=" not in svg and "var(" not in svg and "rgb(" in svg
        left = {}
        exec(compile(saved["python"].read_text("utf-8"), "classify.py", "exec"), left)
        assert left["X"].tolist() == [[0, 0], [10, 10], [0, 10]]


def test_a_table_that_is_none_is_answered_by_a_sentence(open_page):
    with open_page() as visit:
        visit.enter("curve")
        table = {"name": "t.csv", "mimeType": "text/csv", "buffer": b"<html>"}
        visit.page.set_input_files("#file", table)
        visit.page.locator("#error").get_by_text("the table has no rows of numbers").wait_for()
