"""The section on orders of tasks on the page of a table."""

from results.html import page
from results.table import TableResults
from results.verdict.orders import of_rows


def orders_section(results: TableResults) -> str:
    """Returns the shares of the variance, a paragraph for each row that has several orders; "" without one."""
    texts = of_rows(results)
    return page.section("Orders of tasks and seeds", page.paragraphs("\n\n".join(texts))) if texts else ""
