// Makes each render's address, as `format_task` gives it, something to click on.
(function () {
    "use strict";

    var site = SITE,  // with its last slash: no other site begins so
        address = /^\S+\/([0-9a-f]{8})(-[0-9a-f]{4}){3}-[0-9a-f]{12}\/$/;

    function link() {
        var linked = false;

        document.querySelectorAll("td, pre code").forEach(function (place) {
            var text = place.textContent,
                found = text.startsWith(site) && address.exec(text),
                anchor = document.createElement("a");
            if (found) {
                anchor.href = anchor.title = text;
                anchor.textContent = "Render " + found[1];
                place.replaceChildren(anchor);
                linked = true;
            }
        });
        if (linked) {
            window.dispatchEvent(new Event("resize"));  // the table measures its columns anew
        }
    }

    new MutationObserver(link).observe(document.body, { childList: true, subtree: true });
    link();
}());
