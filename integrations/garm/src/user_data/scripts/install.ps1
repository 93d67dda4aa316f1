# Installs GitHub's runner, for a GARM that has no install script of its own. Values are above.
$ErrorActionPreference = 'Stop'
[Net.ServicePointManager]::SecurityProtocol = [Net.SecurityProtocolType]::Tls12
$RunnerHome = 'C:\actions-runner'
$Headers = @{ 'Accept' = 'application/json'; 'Authorization' = "Bearer $Token" }

function Send-Callback([string]$Route, $Body) {
    $Url = $CallbackUrl.TrimEnd('/') -replace '/status$', ''
    $Body = $Body | ConvertTo-Json -Compress
    try { Invoke-WebRequest -UseBasicParsing -Method Post -Uri "$Url/$Route" -Headers $Headers -Body $Body | Out-Null } catch { }
}

function Read-Metadata([string]$Route, [string]$File) {
    Invoke-WebRequest -UseBasicParsing -Uri ($MetadataUrl.TrimEnd('/') + "/$Route") -Headers $Headers -OutFile $File
}

try {
    if (-not (Test-Path $RunnerHome)) {
        Send-Callback 'status/' @{ status = 'installing'; message = "downloading $FileName" }
        $File = Join-Path $env:TEMP $FileName
        $DownloadHeaders = @{}
        if ($DownloadToken) { $DownloadHeaders['Authorization'] = "Bearer $DownloadToken" }
        Invoke-WebRequest -UseBasicParsing -Uri $DownloadUrl -Headers $DownloadHeaders -OutFile $File
        if ($Sha256 -and (Get-FileHash -Algorithm SHA256 $File).Hash -ne $Sha256) {
            throw 'the download has another checksum than GARM says'
        }
        New-Item -ItemType Directory -Path $RunnerHome | Out-Null
        Add-Type -AssemblyName System.IO.Compression.FileSystem
        [System.IO.Compression.ZipFile]::ExtractToDirectory($File, $RunnerHome)
        Remove-Item $File
    }
    Set-Location $RunnerHome
    Send-Callback 'status/' @{ status = 'installing'; message = 'configuring the runner' }
    $Agent = $null
    if ($IsJit) {
        Read-Metadata 'credentials/runner' "$RunnerHome\.runner"
        Read-Metadata 'credentials/credentials' "$RunnerHome\.credentials"
        Add-Type -AssemblyName System.Security
        $Key = "$RunnerHome\key.tmp"
        Read-Metadata 'credentials/credentials_rsaparams' $Key
        # The runner expects its key protected by Windows for the machine.
        $Protected = [Security.Cryptography.ProtectedData]::Protect([IO.File]::ReadAllBytes($Key), $null, 'LocalMachine')
        [IO.File]::WriteAllBytes("$RunnerHome\.credentials_rsaparams", $Protected)
        Remove-Item $Key
        Read-Metadata 'system/service-name' "$RunnerHome\.service"
        $Service = (Get-Content "$RunnerHome\.service" -Raw).Trim()
        New-Service -Name $Service -BinaryPathName "$RunnerHome\bin\RunnerService.exe" -DisplayName $Service `
            -Description 'GitHub Actions runner of GARM' -StartupType Automatic | Out-Null
        Start-Service $Service
    } else {
        $Registration = Join-Path $env:TEMP 'garm-registration'
        Read-Metadata 'runner-registration-token/' $Registration
        # GitHub's script takes the token from this variable too, so that no list of processes shows it.
        $env:ACTIONS_RUNNER_INPUT_TOKEN = (Get-Content $Registration -Raw).Trim()
        Remove-Item $Registration
        $Arguments = @('--unattended', '--ephemeral', '--no-default-labels', '--runasservice', '--url', $RepoUrl, '--name', $RunnerName, '--labels', $RunnerLabels)
        if ($RunnerGroup) { $Arguments += @('--runnergroup', $RunnerGroup) }
        & .\config.cmd @Arguments
        if ($LASTEXITCODE -ne 0) { throw 'the runner could not be configured' }
        $env:ACTIONS_RUNNER_INPUT_TOKEN = $null
        $Agent = (Get-Content "$RunnerHome\.runner" -Raw | ConvertFrom-Json).agentId
    }
    $System = Get-CimInstance Win32_OperatingSystem
    Send-Callback 'system-info/' @{ os_name = $System.Caption; os_version = $System.Version; agent_id = $Agent }
    Send-Callback 'status/' @{ status = 'idle'; message = 'the runner is installed'; agent_id = $Agent }
} catch {
    Send-Callback 'status/' @{ status = 'failed'; message = "$($_.Exception.Message)" }
    exit 1
}
