# What a request costs, in instructions of the worker, against what nginx does without the module. Each is measured
# with a configuration of its own, so that the way to the location is the same.
# shellcheck shell=bash disable=SC2154 # the configurations' parts are set by bench-servers.sh

bench_instructions() {
    local first_good first_bad own_good own_bad

    write_front_config first-good "location / { proxy_pass http://\$upstrand_first_good; }" "$UPSTRANDS"
    write_front_config first-bad "location / { proxy_pass http://\$upstrand_first_bad; }" "$UPSTRANDS"
    write_front_config variable "location / { $VARIABLE }" "$UPSTRANDS"
    write_front_config static "location / { $STATIC }" "$UPSTRANDS"
    write_front_config chain "location / { $CHAIN } $CHAIN_END" "$UPSTRANDS"
    write_front_config unused "location / { $STATIC }"
    write_front_config absent "location / { $STATIC }" "" ""
    first_good=$(instructions first-good /)
    own_good=$(own_instructions)
    first_bad=$(instructions first-bad /)
    own_bad=$(own_instructions)

    ratio "first hop good, against proxy_pass http://\$v" instructions "<= 1.01" "$first_good" "$(instructions variable /)"
    ratio "first hop good, against static proxy_pass" instructions "<= 1.10" "$first_good" "$(instructions static /)"
    ratio "one failed hop (503, 1 KB), against error_page and a named location" instructions "<= 0.97" \
        "$first_bad" "$(instructions chain /)"
    ratio "module loaded and unused, against not loaded" instructions "<= 1.006" \
        "$(instructions unused /)" "$(instructions absent /)"
    value "in the module's own functions, first hop good" instructions - "$own_good"
    value "in the module's own functions, one failed hop" instructions - "$own_bad"
}
