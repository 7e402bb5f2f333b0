"""Every payload in every text that the templates' macros take, without a database."""

from datetime import UTC, date, datetime
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

from jinja2 import nodes

from plankeeper.console.application import create_templates
from support.attacks import PAYLOADS, PageParser
from support.sweeps import sweep

ENVIRONMENT = create_templates(ZoneInfo("Australia/Sydney")).env
TEMPLATES = ENVIRONMENT.list_templates(extensions=["html"])
TEXT = object()  # a payload stands for it

SEGMENT = {"x": 1, "y": 1, "width": 1, "height": 1, "tone": "good", "series": 0, "url": "/console", "tooltip": TEXT}
COLUMN = {
    **dict.fromkeys(("x", "width", "center", "value_y"), 1),
    "label": TEXT,
    "is_minor": True,
    "url": "/console",
    "tooltip": TEXT,
    "value_label": TEXT,
    "segments": [SEGMENT],
    "has_parts": True,
}
CHART = {
    "id": "chart",
    "title": TEXT,
    "summary": TEXT,
    "is_empty": False,
    "height": 9,
    "axis_width": 9,
    "ticks": [{"y": 1, "label": "1", "is_zero": False}],
    "columns": [COLUMN],
    "series": [[0, {"name": TEXT, "tone": "good"}]],
    "heads": [TEXT],
    "rows": [{"name": TEXT, "cells": [{"text": TEXT, "url": "/console"}]}],
}
LINE_CHART = CHART | {
    "lines": [{"name": TEXT, "tone": "good", "path": "M0 1H2", "is_dashed": True}],
    "marks": [{"x": 1, "label": TEXT, "is_minor": True}],
    "targets": [{"x": 1, "width": 1, "tooltip": TEXT}],
    "today": 1,
}
BUDGET_BAR = {
    "name": TEXT, "url": "/console", "used": 1, "passed": 1, "participant": {"account_manager": {"name": TEXT}},
    "budget": {
        "component": TEXT, "used": 1, "amount": 1, "runs_out": None, "end_date": date(2026, 1, 2),
    },
}  # fmt: skip
LISTED_BAR = {"name": TEXT, "text": TEXT, "url": "/console", "width": 1, "tone": "good"}
PARTICIPANT = {
    "id": "1",
    "plan_start_date": None, "plan_end_date": None, "is_pace_plan": True, "preferred_name": TEXT, "pronouns": TEXT,
    "participant_number": TEXT, "status": "Lead", "account_manager": {"id": "1", "name": TEXT}, "first_name": TEXT,
    "phone_number": TEXT, "email": TEXT, "deceased_on": date(2026, 1, 2),
}  # fmt: skip
NUMBERS = {"invoices": 1, "open_warnings": 1, "plan_invoices": 1, "plan_total": 1, "team_members": 1}
PARTICIPANT_HEADER = {
    "participant": PARTICIPANT, "name": TEXT, "page_url": "/console", "has_scheme_number": False, "age": 1,
    "progress": {"state": "undated", "percent": None, "days": None}, "exit_text": None, "contact": None,
    "contact_name": None, "numbers": NUMBERS,
}  # fmt: skip
LISTED_INVOICE = {
    "id": "1", "pm_provider_id": "2", "participant_id": None, "is_deleted": True, "total": None,
    "invoice_number": TEXT, "invoice_date": None, "claim_status": TEXT,
}  # fmt: skip
EVENT = {
    "id": "1", "type": "participant.updated", "created_at": datetime(2026, 1, 2, tzinfo=UTC),
    "actor": {"name": TEXT, "kind": "user"}, "import_id": None,
}  # fmt: skip
EVENT_GROUP = {
    "group": {"first": EVENT | {"resource": {"id": TEXT}}, "events": [EVENT], "title": TEXT}, "name": TEXT,
    "changes": [{"label": TEXT, "before": TEXT, "after": TEXT}], "more": 2, "names": [],
}  # fmt: skip
TIMELINE_ENTRY = {
    "event": EVENT, "url": "/console", "text": TEXT, "undo": "/console", "more": 2,
    "changes": [{"label": TEXT, "before": TEXT, "after": TEXT}],
}  # fmt: skip
IMPORT_ROW = {
    "row": {"line_number": 2, "outcome": "unconfirmed", "has_warnings": False, "event_id": None},
    "name": TEXT,
    "url": "/console/participants/1",
    "problems": [{"text": TEXT, "is_warning": False}],
    "changes": [{"label": TEXT, "before": TEXT, "after": TEXT, "is_edit": True}],
    "is_confirmable": True,
    "preview": TEXT,
    "more": 1,
}
COMPARISON = {
    "other": {"id": "1", "claim_status": TEXT}, "difference_count": 1,
    "values": [{"label": TEXT, "this": TEXT, "other": TEXT, "differs": True}],
}  # fmt: skip

LOGGED_REQUEST = {
    "responded_at": datetime(2026, 1, 2, tzinfo=UTC), "method": TEXT, "path": TEXT, "status": 404, "error_code": TEXT,
    "duration_ms": 1.5, "request_id": TEXT, "field_errors": [TEXT], "errors_total": 2,
}  # fmt: skip
REJECTION = {
    "requests": 7, "first_at": datetime(2026, 1, 2, tzinfo=UTC), "last_at": datetime(2026, 1, 2, tzinfo=UTC),
    "method": TEXT, "route": TEXT, "user_agent": TEXT, "request_id": TEXT,
}  # fmt: skip
SHOWN_LINE = {
    "url": "/console", "line_url": "/console", "number": TEXT, "position": 1, "participant": TEXT, "provider": TEXT,
    "item": TEXT, "amount": 1, "message": TEXT, "warnings": [TEXT],
}  # fmt: skip
LINE_GROUP = {
    "name": "held", "words": {"title": TEXT, "text": TEXT, "link": ["/console", TEXT]}, "line_count": 2, "amount": 1,
    "lines": [SHOWN_LINE], "payees": [{"url": "/console", "name": TEXT, "line_count": 2, "amount": 3}],
    "more": True, "url": "/console", "part": None,
}  # fmt: skip
EVENT_TYPE_GROUP = {"name": TEXT, "pattern": TEXT, "types": [TEXT]}
PICKER = {
    "kind": "provider", "name": "provider", "text": TEXT, "id": None, "is_unclear": True, "message": TEXT,
    "candidates": [{"id": "1", "label": TEXT, "detail": TEXT}],
}  # fmt: skip

LIST_FIELD = {
    "filter": {
        "name": "a", "params": ["a"], "label": TEXT, "kind": "record", "placeholder": TEXT, "is_search": True,
        "choices": {"x": TEXT}, "any_label": TEXT,
    },
    "texts": [TEXT], "errors": {"a": TEXT}, "picker": PICKER,
    "choices": [{"name": TEXT, "detail": TEXT, "url": "/console"}], "options": {"x": TEXT},
}  # fmt: skip
PLACE = {
    "title": TEXT, "one": TEXT, "back_url": "/console", "previous_url": "/console", "next_url": "/console",
    "position": 3, "total": 45, "matches_filters": True,
}  # fmt: skip
RANGE_FILTER = {"name": "a", "params": ["a", "b", "c"], "label": TEXT, "kind": "date_range", "is_search": False}
RANGE_FIELD = LIST_FIELD | {"filter": RANGE_FILTER, "texts": [TEXT, TEXT, TEXT]}
RANGE_FIELD["choices"] = [{"label": TEXT, "url": "/console", "is_current": True}]
LIST_COLUMN = {"label": TEXT, "format": "text", "is_amount": False}
SAVED = {
    "current_view": None, "query": TEXT, "can_share": True, "settings": {"density": "compact"},
    "views": [{"name": TEXT, "url": "/console", "is_shared": True, "is_current": False}],
}  # fmt: skip
COLUMN_CHOICES = [{"name": TEXT, "label": TEXT, "is_shown": True}]
LIST_DEFINITION = {
    "owner_id": None,
    "kind": TEXT, "form_value": TEXT, "title": TEXT, "path": "/console/invoices", "past_label": TEXT, "many": TEXT,
    "actions": [{"path": "/console", "label": TEXT, "role": "viewer"}],
}  # fmt: skip
SELECTION = {
    "definition": LIST_DEFINITION, "rows": [{"id": TEXT}], "shown": [], "query": TEXT, "missing": 2,
    "back_url": "/console", "filters": [TEXT], "matched": "",
}  # fmt: skip
LIST_PAGE = {
    "definition": LIST_DEFINITION, "summary": TEXT, "saved": SAVED, "column_choices": COLUMN_CHOICES,
    "densities": {"compact": TEXT}, "query": {"params": {"sort": "-total"}, "size": 50, "text": TEXT},
    "fields": [LIST_FIELD, RANGE_FIELD], "has_errors": True,
    "headers": [{"column": LIST_COLUMN, "url": "/console", "direction": None}],
    "rows": [{"id": "1", "url": "/console", "is_past": True, "cells": [TEXT]}], "clear_url": "/console",
    "chips": [{"text": TEXT, "remove_url": "/console"}], "position_text": TEXT, "previous_url": "/console",
    "next_url": "/console", "sizes": [{"label": "50", "url": "/console", "is_current": True}],
    "is_shown": True, "can_download": True, "read_at": datetime(2026, 1, 2, tzinfo=UTC),
    "csv_url": "/console", "xlsx_url": "/console", "can_select_all": True, "count": 101, "groups": None,
    "group_links": [{"label": TEXT, "url": "/console", "is_current": True}],
}  # fmt: skip
GROUPS = {
    "grouping": {"label": TEXT}, "rows": [{"label": TEXT, "url": url, "count": 2, "sums": [1]} for url in (None, "/a")],
    "count": 4, "sums": [2], "summary": TEXT, "has_bars": True, "chart": None,
    "bars": {"title": TEXT, "is_empty": False, "bars": [LISTED_BAR]},
}  # fmt: skip
GROUPED_PAGE = LIST_PAGE | {"definition": LIST_DEFINITION | {"group_amounts": [{"label": TEXT}]}, "groups": GROUPS}
STANDARD_NUMBERS = {"in_time": 1, "late": 1, "counted": 2, "percent": 50}
REPORT_ROW = dict.fromkeys(("claimed", "paid"), STANDARD_NUMBERS)
REPORT_ROW |= {"name": TEXT, "url": "/console", "claimed_url": "/console", "paid_url": None}

# Macros that take text from users, each with arguments.
NOTE = {
    "id": "1",
    "resource": {"kind": "provider", "id": "2"},
    "note_type": TEXT,
    "badge_color": TEXT,
    "text": TEXT,
    "pinned": True,
    "alert": True,
    "author": {"kind": "user", "name": TEXT},
    "created_at": EVENT["created_at"],
}
RECORD_NOTES = {"notes": [NOTE], "has_more": False, "types": {}, "url": "/console"}
CALLS: dict[str, dict[str, Any]] = {
    "notes/macros.html note_card": {"note": NOTE, "about": TEXT, "can_edit": True},
    "notes/macros.html notes_section": {"notes": RECORD_NOTES, "can_write": True, "csrf": "c", "empty_form": {}},
    "notes/macros.html review_notes": {"notes": [NOTE]},
    "payments/macros.html left_out": {"count": 2, "groups": [LINE_GROUP], "url": "/console"},
    "payments/macros.html run_warnings": {"warnings": [{"message": TEXT}]},
    "payments/macros.html state_tag": {"state": TEXT},
    "bank_details/macros.html account": {
        "summary": {"bsb": "062000", "account_ending": TEXT, "account_name": TEXT, "estate_payee": TEXT},
    },
    "bank_details/macros.html bank_details_section": {
        "details": {
            "url": "/console",
            "row": {
                "current_ending": TEXT,
                "current_estate_payee": TEXT,
                "needs_approval": True,
                "proposal_id": "1",
                "proposed_ending": TEXT,
                "proposed_estate_payee": TEXT,
                "proposed_by": TEXT,
                "proposed_at": NOTE["created_at"],
            },
            "changes": [
                {
                    "action": "approved",
                    "old_ending": TEXT,
                    "new_ending": TEXT,
                    "note": TEXT,
                    "actor_name": TEXT,
                    "actor_kind": "user",
                    "created_at": NOTE["created_at"],
                }
            ],
            "actions": {"approved": "Approved"},
            "is_deceased": True,
        },
        "can_propose": True,
        "can_open": True,
    },
    "bank_details/macros.html ending": {"text": TEXT},
    "claims/macros.html claim_state_tag": {"state": TEXT, "label": TEXT},
    "claims/macros.html line_group": {"group": LINE_GROUP},
    "claims/macros.html line_table": {"lines": [SHOWN_LINE], "caption": TEXT, "items": True},
    "claims/macros.html batch_content": {
        "content": {
            "single": None,
            "warned": [LINE_GROUP],
            "left_out": [LINE_GROUP],
            "left_out_count": 2,
            "is_cut": True,
        },
        "url": "/console",
    },
    "components/charts.html bar_chart": {"chart": CHART, "empty": TEXT},
    "components/charts.html bar_list": {
        "chart": {"title": TEXT, "is_empty": False, "bars": [LISTED_BAR]},
        "empty": TEXT,
    },
    "components/charts.html chart_table": {"chart": CHART},
    "components/charts.html column": {"chart": CHART, "each": COLUMN, "is_textured": True},
    "components/charts.html legend": {"chart": CHART},
    "components/charts.html line_chart": {"chart": LINE_CHART},
    "components/charts.html rectangles": {"chart": CHART, "column": COLUMN, "is_textured": True},
    "plans/macros.html budget_list": {
        "id": "a",
        "title": TEXT,
        "explanation": TEXT,
        "bars": [BUDGET_BAR],
        "count": 2,
        "empty": TEXT,
    },
    "components/errors.html error_summary": {
        "errors": {"a": TEXT},
        "warnings": {"b": {"message": TEXT, "url": "/console", "link_text": TEXT}},
        "content": '<input id="a"><input id="b">',
    },
    "components/errors.html summary_line": {"name": "a", "sentence": TEXT, "content": '<input id="a">'},
    "components/forms.html messages": {"name": "a", "errors": {"a": TEXT}, "hint": TEXT},
    "components/forms.html field_label": {"name": "a", "label": TEXT},
    "components/forms.html date_field": {"name": "a", "label": TEXT, "value": TEXT, "errors": {}, "hint": TEXT},
    "components/forms.html code_field": {"errors": {"code": TEXT}, "hint": TEXT},
    "components/forms.html file_field": {"name": "a", "label": TEXT, "errors": {"a": TEXT}, "hint": TEXT},
    "components/forms.html radios": {"name": "a", "label": TEXT, "choices": {"x": TEXT}, "selected": TEXT},
    "components/forms.html checkbox": {"name": "a", "label": TEXT, "is_checked": True, "hint": TEXT},
    "components/forms.html confirmed_warnings": {"warnings": {"a": {"token": TEXT}}},
    "components/forms.html form_actions": {"label": TEXT, "cancel": "/console", "warnings": {"a": {"token": TEXT}}},
    "components/forms.html submit_row": {"label": TEXT, "cancel": "/console", "kind": "danger"},
    "components/forms.html field": {
        "name": "a",
        "label": TEXT,
        "value": TEXT,
        "errors": {"a": TEXT},
        "hint": TEXT,
        "suggestions": [TEXT],
    },
    "components/forms.html select": {
        "name": "a",
        "label": TEXT,
        "choices": {"x": TEXT},
        "selected": TEXT,
        "hint": TEXT,
        "groups": [(TEXT, {"y": TEXT})],
    },
    "components/forms.html copy_block": {"id": "a", "text": TEXT, "label": TEXT},
    "components/forms.html post_button": {"action": "/console", "label": TEXT, "csrf": TEXT},
    "components/forms.html csrf_field": {"csrf": TEXT},
    "components/forms.html textarea": {"name": "a", "label": TEXT, "value": TEXT, "errors": {}, "hint": TEXT},
    "components/forms.html checkboxes": {"name": "a", "choices": {"x": TEXT}, "selected": [TEXT], "hint": TEXT},
    "components/forms.html swatch": {"color": TEXT},
    "lists/group_macros.html group_menu": {"list": GROUPED_PAGE},
    "lists/group_macros.html group_page": {"list": GROUPED_PAGE},
    "lists/list_macros.html messages": {"field": LIST_FIELD, "names": ["a"]},
    "lists/list_macros.html text_input": {"field": LIST_FIELD, "position": 0, "label": TEXT, "placeholder": TEXT},
    "lists/list_macros.html choice_field": {"field": LIST_FIELD},
    "lists/list_macros.html range_field": {"field": RANGE_FIELD, "first_label": TEXT, "last_label": TEXT, "hint": TEXT},
    "lists/list_macros.html list_record_field": {"field": LIST_FIELD},
    "lists/list_macros.html filter_field": {"field": LIST_FIELD},
    "lists/list_macros.html toolbar": {"list": LIST_PAGE, "csrf": TEXT},
    "lists/list_macros.html print_heading": {"list": LIST_PAGE},
    "lists/list_macros.html chips": {"list": LIST_PAGE},
    "lists/list_macros.html cell": {"column": LIST_COLUMN, "value": TEXT, "url": "/console"},
    "lists/list_macros.html header_cell": {"header": LIST_PAGE["headers"][0]},
    "lists/list_macros.html list_table": {"list": LIST_PAGE},
    "lists/list_macros.html pages": {"list": LIST_PAGE},
    "lists/list_macros.html selection_bar": {"list": LIST_PAGE, "has_role": bool},
    "lists/saved_views_macros.html views_menu": {"list": LIST_PAGE, "csrf": TEXT},
    "lists/saved_views_macros.html columns_menu": {"list": LIST_PAGE, "csrf": TEXT},
    "lists/saved_views_macros.html view_fields": {
        "kind": TEXT,
        "query": TEXT,
        "name": TEXT,
        "is_shared": True,
        "can_share": True,
        "max_length": 60,
    },
    "lists/saved_views_macros.html settings_fields": {
        "kind": TEXT,
        "query": TEXT,
        "columns": COLUMN_CHOICES,
        "density": TEXT,
        "densities": {"compact": TEXT},
    },
    "lists/selection_macros.html hidden_fields": {"selection": SELECTION, "csrf": TEXT},
    "lists/selection_macros.html nothing_selected": {"selection": SELECTION},
    "lists/selection_macros.html selected_text": {"selection": {**SELECTION, "matched": TEXT}},
    "shell/navigation.html breadcrumbs": {"pages": [["/console", TEXT]]},
    "shell/navigation.html record_crumbs": {"address": "/console", "text": TEXT, "place": PLACE},
    "shell/navigation.html tab_bar": {"label": TEXT, "tabs": [["/console", TEXT, 3]], "current": "/console"},
    "people/macros.html created_access": {
        "keys": [{"name": TEXT, "last_four": TEXT, "last_used_at": None}],
        "invitations": [{"email": TEXT, "role": TEXT}],
    },
    "people/macros.html details_of": {
        "each": {"permissions": ["make_claims"], "participants_of": "1", "can_download": False},
        "permission_labels": {"make_claims": TEXT},
        "limits": {"1": TEXT},
    },
    "people/macros.html role_details": {
        "permission_choices": {"make_claims": TEXT},
        "permissions": [],
        "manager_choices": {"1": TEXT},
        "participants_of": "1",
        "can_download": True,
        "errors": {},
    },
    "participants/macros.html grouped_number": {"id": "number", "value": TEXT},
    "participants/macros.html phone_and_email": {"phone": TEXT, "email": TEXT},
    "participants/macros.html record_header": {"header": PARTICIPANT_HEADER, "can_edit": True, "can_see_data": True},
    "components/events.html event_group": {
        "shown": EVENT_GROUP,
        "suffix": "",
        "filters": {},
        "continues": True,
        "has_role": bool,
    },
    "components/events.html latest_events": {"events": [[EVENT, TEXT]]},
    "components/events.html history": {"events": [[EVENT, TEXT]], "max_events": 1, "record_id": "1"},
    "components/events.html event_line": {"event": EVENT, "resource_name": TEXT, "resource_url": "/console"},
    "components/timeline.html timeline_entries": {"entries": [TIMELINE_ENTRY]},
    "components/pickers.html record_field": {"picker": PICKER, "label": TEXT, "hint": TEXT, "placeholder": TEXT},
    "components/pickers.html candidate_choices": {"picker": PICKER},
    "components/spend.html invoice_table": {
        "rows": [[LISTED_INVOICE, [TEXT]]],
        "names": {"2": TEXT},
        "other": "provider",
    },
    "developers/requests_macros.html request_charts": {"charts": [CHART]},
    "developers/requests_macros.html request_status": {"request": LOGGED_REQUEST},
    "developers/requests_macros.html request_table": {"requests": [{"id": "1", "request": LOGGED_REQUEST}]},
    "developers/requests_macros.html rejection_table": {"rejections": [[REJECTION, TEXT, TEXT]]},
    "developers/webhooks_macros.html delivery_status": {
        "delivery": {"status": TEXT, "attempts": [], "next_attempt_at": None},
    },
    "developers/webhooks_macros.html health_strip": {"strip": {"summary": TEXT, "succeeded": "", "failed": ""}},
    "developers/webhooks_macros.html endpoint_fields": {
        "values": {"url": TEXT, "description": TEXT, "event_types": [], "payload": TEXT},
        "groups": [EVENT_TYPE_GROUP],
        "errors": {"url": TEXT},
    },
    "developers/webhooks_macros.html event_type_boxes": {
        "groups": [EVENT_TYPE_GROUP],
        "selected": [],
        "errors": {"event_types": TEXT},
    },
    "components/records.html detail": {"name": "a", "label": TEXT, "value": TEXT, "kind": "wide"},
    "components/records.html detail_email": {"name": "a", "value": TEXT},
    "components/records.html status_tag": {"value": TEXT},
    "components/records.html version_field": {
        "version": TEXT,
        "conflicts": {"first_name": {"value": TEXT, "event": EVENT}},
    },
    "imports/macros.html outcome_filters": {
        "path": "/console/imports/1",
        "filters": {"created": [TEXT, 1]},
        "show": "created",
        "total": 1,
    },
    "imports/macros.html row_table": {"rows": [IMPORT_ROW], "caption": TEXT, "has_ticks": True},
    "imports/macros.html row_details": {"each": IMPORT_ROW},
    "components/invoices.html claim_tag": {"status": TEXT},
    "components/invoices.html approval_tag": {"status": TEXT},
    "components/invoices.html sum_row": {"label": TEXT, "value": None, "expected": None},
    "components/invoices.html comparison_table": {"comparison": COMPARISON},
    "invoices/actions.html reason_action": {
        "url": "/console",
        "name": "hold",
        "text": "Hold",
        "key": "h",
        "verb": "Hold",
        "hint": "Hint",
        "reason": TEXT,
        "csrf": "x",
        "max_length": 9,
    },
    "invoices/actions.html invoice_actions": {
        "invoice": {"id": "1", "assigned_to": None},
        "allowed": ["hold"],
        "warnings": [{"title": TEXT}],
        "accounts": {"1": TEXT},
        "own_account": "1",
        "suffix": "",
        "csrf": "x",
        "max_length": 9,
    },
    "reports/macros.html report_table": {"caption": TEXT, "head": TEXT, "rows": [REPORT_ROW]},
    "reports/macros.html part": {"numbers": STANDARD_NUMBERS, "url": "/console", "name": TEXT, "what": TEXT},
    "review/macros.html decisions": {
        "invoice": {"id": "1", "assigned_to": None, "claim_status": "new"},
        "allowed": ["hold"],
        "warnings": [{"title": TEXT, "level": "warn"}],
        "approval": {"can_record": True, "people": {"": TEXT}},
        "accounts": {"1": TEXT},
        "own_account": "1",
        "query": "",
        "csrf": "x",
        "max_length": 9,
    },
    "review/macros.html queue_tabs": {
        "tabs": [{"url": "/console", "label": TEXT, "count_text": "3", "is_current": True}],
        "warning_tabs": [{"url": "/console", "label": TEXT, "count_text": "3", "is_current": True}],
    },
    "review/macros.html budget_bar": {
        "budget": {
            "component": {"name": TEXT, "amount": 100},
            "numbers": {"used": 30, "available": 70},
        },
    },
    "invoices/upload_macros.html failed_file": {"name": TEXT, "message": TEXT},
    "invoices/approval_card.html approval_card": {
        "invoice": {"id": "1", "approval_status": "pending", "approval_decided_at": None},
        "card": {
            "note": TEXT,
            "links": [
                {
                    "link": {
                        "name": TEXT,
                        "email": TEXT,
                        "sent_at": None,
                        "is_reminder": False,
                        "has_other_email": False,
                    },
                    "state": TEXT,
                },
            ],
            "people": {"": TEXT},
            "can_ask": False,
            "can_send": False,
            "can_revoke": False,
            "can_record": True,
        },
        "suffix": "",
        "csrf": "a",
        "max_length": 1000,
        "is_manager": True,
    },
    "invoices/approval_card.html decision_form": {
        "url": "/console",
        "card": {"people": {"": TEXT}},
        "csrf": "a",
        "max_length": 1000,
    },
    "review/macros.html missing_document": {"url": "/console", "errors": {"files": TEXT}, "csrf": "a", "can_add": True},
    "invoices/document.html document_pages": {"invoice": {"id": "1", "document": {"file_name": TEXT}}},
    "invoices/form_macros.html typed_field": {
        "section": None,
        "each": {"name": "total", "kind": "amount", "hint": ""},
        "id": "total",
        "value": TEXT,
        "errors": {"total": TEXT},
    },
    "invoices/form_macros.html check_results": {
        "check": {
            "missing": [TEXT],
            "problems": [TEXT],
            "sums": [],
            "amounts": {"total": TEXT},
            "support_items": [(1, TEXT)],
            "notes": [TEXT],
        },
    },
}

# Macros that take no text from users, each with what it takes.
NO_TEXTS = {
    "settings/claims_and_payments.html bank_name": "values of the template, whose page is swept",
    "notes/macros.html note_fields": "a form, whose values the macro of each control shows",
    "lists/selection_macros.html missing_text": "a number",
    "components/charts.html textures": "tones of series",
    "imports/macros.html outcome_tag": "codes of the console",
    "imports/macros.html state_tag": "codes of the console",
    "imports/macros.html row_pages": "addresses that the console builds",
    "components/icons.html icon": "a name of the console",
    "claims/macros.html batch_tag": "states",
    "claims/macros.html count_lines": "a number",
    "claims/macros.html part_pages": "addresses that the console builds",
    "components/forms.html age_tag": "a datetime",
    "payments/remittance_advices.html print_links": "labels of the page, and addresses that the console builds",
    "developers/webhooks_macros.html delivery_tag": "states",
    "developers/webhooks_macros.html endpoint_status": "states and times",
    "components/forms.html time_tag": "a datetime",
    "components/forms.html pager": "addresses that the console builds",
    "components/forms.html described": "names of fields",
    "components/forms.html invalid": "names of fields",
    "components/invoices.html difference_text": "a number of differences",
    "participants/macros.html more_actions": "links of the template",
    "participants/macros.html plan_bar": "dates",
    "components/spend.html sum_strip": "sums by names of the console",
    "components/records.html checkbox": "a form",
    "components/forms.html form_rows": "a form, whose values the macro of each control shows",
    "components/forms.html form_field": "likewise",
    "components/events.html changes_table": "changes, which the pages of events show",
    "components/events.html event_line": "an event, which the page that undoes it shows",
    "lists/selection_macros.html more_rows": "a number",
    "invoices/actions.html plain_action": "texts of the console",
    "invoices/actions.html line_actions": "a number and addresses that the console builds",
    "invoices/actions.html line_retry": "a number and an address that the console builds",
    "invoices/document.html hidden_document": "words of the template",
    "invoices/invoice.html service_dates": "dates",
    "invoices/approval_link.html days": "dates",
    "invoices/actions.html key_hint": "a key",
    "invoices/form_macros.html line_button": "a number and addresses that the console builds",
    "invoices/form_macros.html line_fields": "a form, whose values the macro of each control shows",
    "components/timeline.html timeline_entries": "entries, which the page of the timeline shows",
}


def macros() -> dict[str, nodes.Macro]:
    found: dict[str, nodes.Macro] = {}
    for template in TEMPLATES:
        assert ENVIRONMENT.loader
        source = ENVIRONMENT.loader.get_source(ENVIRONMENT, template)[0]
        if "macro" in source:  # to parse all templates takes a second
            found |= {f"{template} {each.name}": each for each in ENVIRONMENT.parse(source).find_all(nodes.Macro)}
    return found


def filled(value: Any, payload: str) -> Any:
    if isinstance(value, dict):
        return {name: filled(each, payload) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(each, payload) for each in value]
    return payload if value is TEXT else value


def test_every_macro_is_tried_or_takes_no_text() -> None:
    assert set(macros()) == set(CALLS) | set(NO_TEXTS)


@sweep("macro, kind", list(product(CALLS, PAYLOADS)))
def test_a_text_becomes_no_part_of_the_markup_and_is_shown_as_it_is(macro: str, kind: str) -> None:
    payload = PAYLOADS[kind]
    template, name = macro.split()
    module = ENVIRONMENT.get_template(template).make_module()
    shape = PageParser()
    shape.feed(str(getattr(module, name)(**filled(CALLS[macro], payload))))
    assert shape.violations == []
    assert payload.lower() in shape.text.lower()  # a status begins with a capital
