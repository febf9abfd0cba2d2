"""Who may enter, and how requests are treated: units of policies, services that are asked, and what keeps anybody else out."""
