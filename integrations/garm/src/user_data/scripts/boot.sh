# Gets the install script of this runner and runs it as the runner's user. Values are above.
set -u -o pipefail
umask 077

# curl reads the token from standard input, so that no list of processes shows it.
request() {
    printf 'header = "Authorization: Bearer %s"\n' "$TOKEN" |
        curl --config - --silent --show-error --retry 5 --retry-delay 5 --retry-connrefused "$@"
}

report_failure() {
    local url=${CALLBACK_URL%/}
    [[ $url == */status ]] || url=$url/status
    echo "garm-provider: $1" >&2
    request --fail --output /dev/null --header 'Accept: application/json' \
        --data "{\"status\": \"failed\", \"message\": \"$1\"}" "$url" || true
    exit 1
}

run_as_runner() {
    local copy=/home/$RUNNER_USER/.garm-install.sh status=0
    install -m 0700 -o "$RUNNER_USER" "$1" "$copy" || report_failure "the install script cannot be copied"
    su -l -c "$copy" "$RUNNER_USER" || status=$?
    rm -f "$copy"
    exit "$status"
}

if [ -n "$FETCH" ]; then
    script=$FOLDER/fetched.sh
    code=$(request --output "$script" --write-out '%{http_code}' "${METADATA_URL%/}/install-script/") || code=${code:-000}
    [ "$code" != 200 ] || run_as_runner "$script"
    # Only a GARM that does not have the route answers with 404.
    [ "$code" = 404 ] && [ -n "$HAS_FALLBACK" ] ||
        report_failure "the install script could not be fetched from GARM: HTTP status $code"
fi
run_as_runner "$FOLDER/install.sh"
