"""The quota editor as a person uses it: find a cell, type, look at what it says."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


class Sheet:
    """The grid of one page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.grid = page.locator("#sheet[data-state=ready]")
        self.grid.wait_for()
        self.message = page.locator("#sheet-message")
        self.where = page.locator("#sheet-where")
        self.faults = page.locator("#faults")

    def filter(self, text: str, service: str = "", show: str = "") -> None:
        """Show some of the rows."""
        self.page.locator("#filter-service").select_option(service)
        self.page.locator("#filter-show").select_option(show)
        self.page.locator("#filter-text").fill(text)
        self.page.locator("#filter-text").press("Enter")
        # The rows are painted with the next frame; a person is not faster than that.
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def column(self, title: str) -> str:
        """The number of a column."""
        return str(self.grid.locator(f".sheet-head [title='{title}']").get_attribute("data-column"))

    def cell(self, row: str, column: str) -> Locator:
        """One cell by the names of its row and its column; the row has to be in sight."""
        found = self.grid.locator(".sheet-body .sheet-row").filter(has=self.page.get_by_text(row, exact=True))
        return found.first.locator(f"[data-column='{self.column(column)}']")

    def type(self, row: str, column: str, text: str, key: str = "Enter") -> None:
        """Click on a cell and type over it; what the grid says of it is what is there afterwards."""
        cell = self.cell(row, column)
        cell.scroll_into_view_if_needed()
        cell.click()
        self.page.keyboard.type(text)
        self.page.keyboard.press(key)
        cell.click()
