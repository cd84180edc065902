# The table of a benchmark, and the places in the documentation that show it.
# shellcheck shell=bash disable=SC2154 # ROOT, WORKDIR and CASE are set by common.sh and bench.sh

# ratio WHAT UNIT LIMIT OURS OTHER [RATIO]: a line of the table. OURS and OTHER are figures, each perhaps with its least
# and its greatest ("120 118 125"). LIMIT is what OURS / OTHER must be, as in "<= 1.01" or "> 1", or "-" if nothing.
ratio() {
    awk -v topic="$CASE" -v what="$1" -v unit="$2" -v limit="$3" -v ours="$4" -v other="$5" -v ratio="${6-}" \
        "$(row_functions)"'
        BEGIN {
            split(ours, a); split(other, b)
            row(what, figure(ours) " / " figure(other) " " unit,
                sprintf("%.3f", ratio == "" ? a[1] / b[1] : ratio), limit)
        }' | tee -a "$WORKDIR/rows" | show_rows
}

# paired_ratio WHAT UNIT LIMIT OURS OTHER: the same of two lists of figures that were taken in turns; the median of the
# ratios of each pair, since the machine may be slower in one pair than in another.
paired_ratio() {
    local ours other ratios ratio
    read -ra ours <<<"$4"
    read -ra other <<<"$5"
    mapfile -t ratios < <(awk -v a="$4" -v b="$5" 'BEGIN {
        n = split(a, ours); split(b, other)
        for (i = 1; i <= n; i++) print ours[i] / other[i]
    }')

    ratio=$(median "${ratios[@]}")
    ratio "$1" "$2" "$3" "$(median "${ours[@]}")" "$(median "${other[@]}")" "${ratio%% *}"
}

# value WHAT UNIT LIMIT FIGURE: a line of the table about one figure, to which the limit applies.
value() {
    awk -v topic="$CASE" -v what="$1" -v unit="$2" -v limit="$3" -v figures="$4" "$(row_functions)"'
        BEGIN {
            split(figures, a)
            row(what, figure(figures) " " unit, a[1], limit)
        }' | tee -a "$WORKDIR/rows" | show_rows
}

row_functions() {
    cat <<'END_OF_FUNCTIONS'
function figure(text,  part) {
    return split(text, part) == 3 ? part[1] " (" part[2] "-" part[3] ")" : part[1]
}
function holds(result, limit,  part) {
    split(limit, part)
    return part[1] == "<=" ? result <= part[2] : part[1] == "<" ? result < part[2] : result > part[2]
}
function row(what, figures, result, limit) {
    printf "%s\t%s\t%s\t%s\t%s\t%s\n", topic, what, figures, result, limit,
        limit == "-" ? "-" : (holds(result + 0, limit) ? "yes" : "no")
}
END_OF_FUNCTIONS
}

show_rows() {
    awk -F '\t' '{
        printf "%s: %s%s", $2, $3, index($3, $4 " ") == 1 ? "" : " = " $4
        print $6 == "-" ? "" : " (" ($6 == "no" ? "NOT " : "") "reached: " $5 ")"
    }'
}

# Whether all figures are what they must be.
all_reached() {
    ! cut -f 6 "$WORKDIR/rows" | grep -qx no
}

# median FIGURE...: the middle one, the least and the greatest.
median() {
    printf '%s\n' "$@" | sort -g | awk '
        { figure[NR] = $1 }
        END { print figure[int((NR + 1) / 2)], figure[1], figure[NR] }'
}

# --- in the documentation

PERFORMANCE=docs/performance.md
PLOT=docs/performance.svg

# Puts this run's figures between the two lines of docs/performance.md that mark their place, and draws them.
write_performance() {
    {
        sed '/^<!-- figures/q' "$PERFORMANCE"
        performance_table
        sed -n '/^<!-- end of figures/,$p' "$PERFORMANCE"
    } >"$WORKDIR/performance.md"

    cp "$WORKDIR/performance.md" "$PERFORMANCE"
    awk -F '\t' "$(plot_program)" "$WORKDIR/rows" >"$PLOT"
}

performance_table() {
    printf '\nnginx %s (%s), %s, on %s of %s processors (%s), Linux %s, %s.\n\n' \
        "$version" "$(compiler_of_nginx)" "$(rustc --version | cut -d ' ' -f 1-2)" "$(nproc)" "$(nproc --all)" \
        "$(processor_name)" "$(uname -r | cut -d - -f 1)" "$(date +%F)"

    awk -F '\t' '
        $1 != topic {
            topic = $1
            print (NR == 1 ? "" : "\n") "`scripts/bench.sh " topic "`\n"
            print "| | measured | ratio | to reach | reached |\n|---|---|---|---|---|"
        }
        { print "| " $2 " | " $3 " | " (index($3, $4 " ") == 1 ? "" : $4) " | " $5 " | " $6 " |" }
        END { print "" }
    ' "$WORKDIR/rows" | sed 's/| - | - |$/| | |/'
}

compiler_of_nginx() {
    "$BINARY" -V 2>&1 | sed -n 's/^built by \([^ ]* [^ ]*\).*/\1/p'
}

processor_name() {
    sed -n '/^model name/ { s/.*: //p; q }' /proc/cpuinfo
}

# A bar for each ratio, as long as it is, and a mark where it has to end.
plot_program() {
    cat <<'END_OF_PROGRAM'
function escaped(text) {
    gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text)
    return text
}
function x(ratio) {
    return 620 + (ratio > 2 ? 2 : ratio) * 150
}
function colour(reached) {
    return reached == "yes" ? "#86efac" : reached == "no" ? "#fca5a5" : "#d1d5db"
}
$3 ~ / \/ / {
    n++
    sub(/.*\/ [0-9.]+( \([^)]*\))? /, "", $3)
    what[n] = escaped($2 ", " $3)
    ratio[n] = $4
    limit[n] = $5 == "-" ? "" : substr($5, index($5, " ") + 1)
    more[n] = $5 ~ /^>/
    reached[n] = $6
}
END {
    height = n * 24 + 50
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1070\" height=\"%d\" viewBox=\"0 0 1070 %d\" ", height, height
    print "role=\"img\"\n     font-family=\"sans-serif\" font-size=\"12\" fill=\"#1f2937\">"
    print "  <title>The ratios of docs/performance.md, with marks where they have to end</title>"
    printf "  <rect width=\"1070\" height=\"%d\" rx=\"8\" fill=\"#ffffff\"/>\n", height

    for (tick = 0; tick <= 2; tick += 0.5) {
        printf "  <path d=\"M%d,32 V%d\" stroke=\"%s\"/>\n", x(tick), height - 10, tick == 1 ? "#4b5563" : "#e5e7eb"
        printf "  <text x=\"%d\" y=\"24\" text-anchor=\"middle\">%s</text>\n", x(tick), tick
    }

    for (i = 1; i <= n; i++) {
        y = 24 * i + 12
        end = x(ratio[i])
        printf "  <text x=\"608\" y=\"%d\" text-anchor=\"end\">%s</text>\n", y + 12, what[i]
        printf "  <rect x=\"620\" y=\"%d\" width=\"%.1f\" height=\"15\" rx=\"2\" fill=\"%s\"/>\n", y, end - 620,
            colour(reached[i])
        if (limit[i] != "") {
            printf "  <path d=\"M%.1f,%d v19\" stroke=\"#1d4ed8\" stroke-width=\"2\"/>\n", x(limit[i]), y - 2
            end = x(limit[i]) > end ? x(limit[i]) : end
        }
        printf "  <text x=\"%.1f\" y=\"%d\">%s%s</text>\n", end + 6, y + 12, ratio[i], more[i] ? " (more is better)" : ""
    }
    print "</svg>"
}
END_OF_PROGRAM
}
