"""Bodies for the OpenAPI document that are worth a look, by operation."""

from typing import Any

_ID = "5b0d8c39-0c8a-4f4e-9d0a-3d1a3a6f2c11"

EXAMPLES: dict[str, dict[str, Any]] = {
    "prove_myself": {"password": "three short words of mine"},
    "create_token": {"name": "nightly export", "scope": "read", "days": 90},
    "create_invitation": {"role": "annotator", "note": "Ada, from Monday"},
    "create_invitations": {"addresses": ["anna@example.org", "Bo Lind <bo@example.org>"]},
    "update_user": {"disabled": True},
    "create_simulated_annotator": {"name": "one in ten wrong"},
    "create_dataset": {"name": "shop photographs", "path": "/srv/datasets/shop.zip"},
    "import_dataset_again": {"skip_bad": True},
    "add_images": {"path": "/srv/datasets/shop-may.zip"},
    "add_images_again": {"skip_bad": True},
    "name_classes": {"names": ["chair", "lamp", "stool"]},
    "create_campaign": {
        "name": "Shop photographs, spring",
        "dataset_id": _ID,
        "classes": [{"name": "chair", "description": "With a back; else it is a stool."}, {"name": "lamp"}],
    },
    "edit_campaign": {"instructions": "Answer by what you see first."},
    "set_campaign_price": {"price": 0.02, "price_per": "answer"},
    "set_campaign_admission": {"admits": "invited"},
    "create_group": {"name": "Class 4b"},
    "create_worker_link": {
        "answers_needed": 50,
        "max_workers": 100,
        "code": "C1X7QK2M",
        "note": "Prolific pilot",
    },
    "erase_person": {"name": "Ada Lovelace"},
    "lease_questions": {"count": 20},
    "submit_answers": {
        "answers": [{"question_id": 7305810427, "value": "no", "response_ms": 640, "key": _ID}],
        "next": {"count": 20},
    },
    "undo_answers": {"count": 1},
    "change_answer": {"question_id": 7305810427, "value": "yes", "key": _ID},
    "note_practised": {},
    "review_picture": {"kept": False},
    "renew_leases": {},
    "release_leases": {},
    "mark_known_pictures": {"per_class": 5},
    "ask_doubtful_questions_again": {"count": 50},
    "create_decision": {"question_id": 7, "value": "yes"},
    "start_run": {
        "target_dataset_id": _ID,
        "setting": "cc",
        "seeds": [0, 1, 2],
        "note": "after the first week",
    },
    "edit_model": {"name": "Shop photographs", "notes": "The one that the shop's search uses."},
    "create_prediction": {"dataset_id": _ID},
    "create_subscription": {
        "url": "https://hooks.example.org/clarinet",
        "events": ["run-ended", "campaign-nearly-done"],
    },
    "retry_run": {"seeds": [2]},
    "launch_sweep": {"methods": ["clarinet", "gac+dann"], "seeds": [0, 1, 2], "labels": [500, 2000]},
    "ask_round": {"floor_percent": 20},
    "create_evaluation": {"model_id": _ID, "half_width": 0.03, "expected": 0.9},
    "edit_run": {"note": "the one for the report", "priority": "high"},
}
