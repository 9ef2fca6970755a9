"""Makes test collections of Chinese, Japanese and Korean from documentation that Debian translates.

Each section is a document and its heading, which is taken out of the text, the question; of a manual page, the line
that says what it is for. The weights of pairs (`src/pipeline/bm25/plan.rs`) were chosen on all of them but
zh-cn-handbook, zh-tw-handbook, zh-tw-man (mostly zh-cn-man in other characters) and ko-handbook, which were held out.

usage: mkdir t && cd t && apt-get download debian-handbook installation-guide-amd64 debian-reference-ja \
           debian-reference-zh-cn manpages-zh manpages-ja
       for d in *.deb; do dpkg -x $d x; done; python3 ../benches/cjk_collections.py x out
       rankgate bench cjk-lexical --collection t/out/zh-cn-handbook --collection t/out/ja-handbook …
"""

import glob
import gzip
import json
import os
import re
import sys
from collections import Counter
from html.parser import HTMLParser

SCRIPT = {"zh": r"[\u3400-\u9fff]", "ja": r"[\u3041-\u30ff\u3400-\u9fff]", "ko": r"[\uac00-\ud7a3]"}
HEADINGS = ("h1", "h2", "h3", "h4")
NUMBER = r"^\s*(?:付録|附录|附錄|부록|第|제)?\s*(?:[A-Z]\.)?[\d.]*\s*(?:章|장(?=[ .]))?[\s.、]*"


class Sections(HTMLParser):
    """Headings of a page, each with the text up to the next one."""

    def __init__(self):
        super().__init__()
        self.found, self.heading, self.hidden = [], None, 0

    def handle_starttag(self, tag, attrs):
        if tag in HEADINGS:
            self.heading = ""
        self.hidden += tag in ("script", "style", "head")

    def handle_endtag(self, tag):
        if tag in HEADINGS and self.heading is not None:
            self.found.append([self.heading, ""])
            self.heading = None
        self.hidden -= tag in ("script", "style", "head")
        if tag in ("p", "li", "pre", "dt", "dd", "td") and self.found:
            self.found[-1][1] += "\n"

    def handle_data(self, data):
        if self.heading is not None:
            self.heading += data
        elif self.found and not self.hidden:
            self.found[-1][1] += data


def pages(pattern):
    for path in sorted(glob.glob(pattern)):
        parser = Sections()
        parser.feed(open(path, encoding="utf-8").read())
        for heading, body in parser.found:
            heading = re.sub(NUMBER, "", re.sub(r"\s+", " ", heading)).strip()
            yield heading, re.sub(r"[ \t\u00a0]+", " ", re.sub(r"\n\s*\n+", "\n", body)).strip()


def manuals(pattern):
    def plain(roff):
        roff = re.sub(r'^\.\\".*$', "", roff, flags=re.M)
        return re.sub(r"\\[&|~^/,]|\\f.|\\\(..|\\s-?\d", "", roff.replace("\\-", "-"))

    for path in sorted(glob.glob(pattern)):
        try:
            text = gzip.open(path, "rt", encoding="utf-8").read()
        except (UnicodeDecodeError, OSError):
            continue
        name = re.search(r'^\.SH +"?(?:NAME|名前|名称|名稱|名字)[^\n]*\n([^\n]+)\n(.*)', text, re.M | re.S)
        parts = re.split(r"\s+-+\s+|\s--?\s", plain(name[1]), maxsplit=1) if name else []
        if len(parts) == 2:
            yield parts[1].strip(), re.sub(r"^\.[A-Za-z]+ ?", "", plain(name[2]), flags=re.M).strip()[:6000]


def write(folder, language, sections):
    documents = []
    for heading, body in sections:
        written = len(re.findall(SCRIPT[language], body))
        if written < 80 or written < 0.2 * len(re.sub(r"\s", "", body)):
            continue
        asks = len(re.findall(SCRIPT[language], heading)) >= 3
        documents.append((heading if asks and len(heading) <= 60 else None, body.replace(heading, " ") if asks else body))
    times = Counter(heading for heading, _ in documents)
    os.makedirs(folder, exist_ok=True)
    names = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")
    corpus, queries, qrels = (open(os.path.join(folder, name), "w", encoding="utf-8") for name in names)
    qrels.write("query-id\tcorpus-id\tscore\n")
    for i, (heading, body) in enumerate(documents):
        print(json.dumps({"_id": f"d{i:04}", "title": "", "text": body}, ensure_ascii=False), file=corpus)
        if heading and times[heading] == 1:
            print(json.dumps({"_id": f"q{i:04}", "text": heading}, ensure_ascii=False), file=queries)
            print(f"q{i:04}\td{i:04}\t1", file=qrels)
    print(folder, len(documents), "documents")


def main(root, out):
    share = f"{root}/usr/share"
    handbook, install = f"{share}/doc/debian-handbook/html", f"{share}/doc/installation-guide-amd64"
    for name, sections in {
        "zh-cn-handbook": pages(f"{handbook}/zh-CN/*.html"),
        "zh-tw-handbook": pages(f"{handbook}/zh-TW/*.html"),
        "ja-handbook": pages(f"{handbook}/ja-JP/*.html"),
        "ko-handbook": pages(f"{handbook}/ko-KR/*.html"),
        "zh-cn-install": pages(f"{install}/zh_CN/*.html"),
        "ja-install": pages(f"{install}/ja/*.html"),
        "ko-install": pages(f"{install}/ko/*.html"),
        "zh-cn-reference": pages(f"{share}/debian-reference/*.zh-cn.html"),
        "ja-reference": pages(f"{share}/debian-reference/*.ja.html"),
        "zh-cn-man": manuals(f"{share}/man/zh_CN/man*/*.gz"),
        "zh-tw-man": manuals(f"{share}/man/zh_TW/man*/*.gz"),
        "ja-man": manuals(f"{share}/man/ja/man*/*.gz"),
    }.items():
        write(os.path.join(out, name), name[:2], sections)


if __name__ == "__main__":
    main(*sys.argv[1:3])
