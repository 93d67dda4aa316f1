# Gets the install script of this runner and runs it. Values are above.
$ErrorActionPreference = 'Stop'
[Net.ServicePointManager]::SecurityProtocol = [Net.SecurityProtocolType]::Tls12
$Headers = @{ 'Accept' = 'application/json'; 'Authorization' = "Bearer $Token" }

function Send-Failure([string]$Message) {
    $Url = $CallbackUrl.TrimEnd('/')
    if (-not $Url.EndsWith('/status')) { $Url = "$Url/status" }
    $Body = @{ status = 'failed'; message = $Message } | ConvertTo-Json -Compress
    try { Invoke-WebRequest -UseBasicParsing -Method Post -Uri $Url -Headers $Headers -Body $Body | Out-Null } catch { }
    throw $Message
}

if ($HttpProxy) { [Environment]::SetEnvironmentVariable('HTTP_PROXY', $HttpProxy, 'Machine'); $env:HTTP_PROXY = $HttpProxy }
if ($HttpsProxy) { [Environment]::SetEnvironmentVariable('HTTPS_PROXY', $HttpsProxy, 'Machine'); $env:HTTPS_PROXY = $HttpsProxy }
if ($NoProxy) { [Environment]::SetEnvironmentVariable('NO_PROXY', $NoProxy, 'Machine'); $env:NO_PROXY = $NoProxy }
$Proxy = if ($HttpsProxy) { $HttpsProxy } else { $HttpProxy }
if ($Proxy) {
    $Web = New-Object System.Net.WebProxy($Proxy, $true)
    if ($NoProxy) {
        $Web.BypassList = @($NoProxy.Split(',') | Where-Object { $_.Trim() } | ForEach-Object { [regex]::Escape($_.Trim()) })
    }
    [System.Net.WebRequest]::DefaultWebProxy = $Web
}

$Number = 0
foreach ($Match in [regex]::Matches($CaBundle, '(?s)-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----')) {
    $File = Join-Path $env:TEMP "garm-ca-$Number.cer"
    Set-Content -Path $File -Value $Match.Value -Encoding Ascii
    Import-Certificate -FilePath $File -CertStoreLocation Cert:\LocalMachine\Root | Out-Null
    Remove-Item $File
    $Number += 1
}

$Script = Join-Path $env:TEMP 'garm-install.ps1'
$Found = $false
if ($Fetch) {
    $Code = 0
    foreach ($Try in 1..6) {
        try {
            Invoke-WebRequest -UseBasicParsing -Headers $Headers -Uri ($MetadataUrl.TrimEnd('/') + '/install-script/') -OutFile $Script
            $Found = $true
            break
        } catch {
            $Code = if ($_.Exception.Response) { [int]$_.Exception.Response.StatusCode } else { 0 }
            if ($Code -eq 404) { break }
            Start-Sleep -Seconds 5
        }
    }
    if (-not $Found -and -not ($Code -eq 404 -and $Fallback)) {
        Send-Failure "the install script could not be fetched from GARM: HTTP status $Code"
    }
}
if (-not $Found) { Set-Content -Path $Script -Value $Fallback -Encoding UTF8 }
if ($IsDebug) { Get-ComputerInfo | Out-String | Write-Output }
powershell.exe -Sta -NonInteractive -ExecutionPolicy RemoteSigned -File $Script
$Status = $LASTEXITCODE
Remove-Item $Script -ErrorAction SilentlyContinue
exit $Status
