# Installs GitHub's runner, for a GARM that has no install script of its own. Values are above.
set -e -u -o pipefail
umask 077
home=$HOME/actions-runner

request() {
    printf 'header = "Authorization: Bearer %s"\n' "$TOKEN" |
        curl --config - --silent --show-error --fail --retry 5 --retry-delay 5 --retry-connrefused "$@"
}

callback() {
    local url=${CALLBACK_URL%/}
    url=${url%/status}
    request --output /dev/null --header 'Accept: application/json' --data "$2" "$url/$1" || echo "garm-provider: $1 was not reported" >&2
}

status() {
    callback status/ "{\"status\": \"$1\", \"message\": \"$2\", \"agent_id\": ${3:-null}}"
}

fail() {
    status failed "$1"
    exit 1
}

read_metadata() {
    request --output "$2" "${METADATA_URL%/}/$1"
}

[ -z "$IS_DEBUG" ] || uname -a
if [ ! -d "$home" ]; then
    status installing "downloading $FILE_NAME"
    if [ -n "$DOWNLOAD_TOKEN" ]; then
        printf 'header = "Authorization: Bearer %s"\n' "$DOWNLOAD_TOKEN"
    fi | curl --config - --silent --show-error --fail --location --retry 5 --retry-delay 5 --retry-connrefused \
        --output "$HOME/$FILE_NAME" "$DOWNLOAD_URL" || fail "the runner could not be downloaded"
    [ -z "$SHA256" ] || echo "$SHA256  $HOME/$FILE_NAME" | sha256sum --check --quiet || fail "the download has another checksum than GARM says"
    mkdir -p "$home"
    tar -xf "$HOME/$FILE_NAME" -C "$home" || fail "the runner could not be unpacked"
    rm -f "$HOME/$FILE_NAME"
    cd "$home"
    status installing "installing dependencies"
    sudo ./bin/installdependencies.sh || fail "the dependencies of the runner could not be installed"
fi
cd "$home"
[ -z "$IS_DEBUG" ] || ls -la "$home"
for name in http_proxy https_proxy no_proxy; do
    [ -z "${!name:-}" ] || echo "$name=${!name}" >> .env
done

agent=null
status installing "configuring the runner"
if [ -n "$IS_JIT" ]; then
    read_metadata credentials/runner .runner || fail "the runner's file could not be read"
    read_metadata credentials/credentials .credentials || fail "the runner's credentials could not be read"
    read_metadata credentials/credentials_rsaparams .credentials_rsaparams || fail "the runner's key could not be read"
    read_metadata system/service-name .service || fail "the name of the service could not be read"
    service=$(cat .service).service
    echo "$service" > .service
    read_metadata "systemd/unit-file?runAsUser=$USER" unit || fail "the unit of the service could not be read"
    sudo install -m 0644 -o root -g root unit "/etc/systemd/system/$service"
    rm -f unit
    cp bin/runsvc.sh .
    chmod 0755 runsvc.sh
    [ ! -e /sys/fs/selinux ] || sudo chcon -R -t bin_t "$home" || true
    sudo systemctl daemon-reload
    sudo systemctl enable --now "$service" || fail "the service could not be started"
else
    registration=$(mktemp)
    read_metadata runner-registration-token/ "$registration" || fail "the registration token could not be read"
    arguments=(--unattended --ephemeral --no-default-labels --url "$REPO_URL" --name "$RUNNER_NAME" --labels "$RUNNER_LABELS")
    [ -z "$RUNNER_GROUP" ] || arguments+=(--runnergroup "$RUNNER_GROUP")
    # GitHub's script takes the registration token from this variable too, so that no list of processes shows it.
    ACTIONS_RUNNER_INPUT_TOKEN=$(cat "$registration") ./config.sh "${arguments[@]}" || fail "the runner could not be configured"
    rm -f "$registration"
    sudo ./svc.sh install "$USER" || fail "the service could not be installed"
    [ ! -e /sys/fs/selinux ] || sudo chcon -R -t bin_t "$home" || true
    sudo ./svc.sh start || fail "the service could not be started"
    agent=$(sed -n 's/.*"agentId": *\([0-9]*\).*/\1/p' .runner)
fi
. /etc/os-release
callback system-info/ "{\"os_name\": \"${NAME:-}\", \"os_version\": \"${VERSION_ID:-}\", \"agent_id\": ${agent:-null}}"
status idle "the runner is installed" "${agent:-null}"
