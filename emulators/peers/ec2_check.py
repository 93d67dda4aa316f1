"""Checks the emulated EC2 with clients of other projects: ec2_check.py <emulator> <work directory>

Prints one line for each case, then the table of actions and clients, then the differences from moto, and
whether docs/libcloud.md still says what the contract finds in apache-libcloud.
"""

import pathlib
import sys

import ec2_libcloud_contract
import ec2_model
import ec2_moto_comparison
import ec2_resources_with_boto3
import ec2_with_awscli
import ec2_with_boto3
import ec2_with_libcloud
from harness import run_checks, check_responses
from processes import Moto, free_port
from recording_proxy import RecordingProxy

# The actions that the emulator must support, in the order of a lifecycle; its own list is checked against this one.
ACTIONS = [
    "RunInstances", "DescribeInstances", "StopInstances", "StartInstances", "RebootInstances", "TerminateInstances",
    "ModifyInstanceAttribute", "CreateTags", "DeleteTags", "DescribeTags", "DescribeImages", "DescribeInstanceTypes",
    "DescribeVolumes", "DescribeNetworkInterfaces", "DescribeAvailabilityZones", "DescribeSubnets",
    "DescribeSecurityGroups", "GetConsoleOutput", "CreateImage", "DescribeInstanceStatus", "DescribeInstanceAttribute",
    "DescribeAddresses", "DeregisterImage", "DescribeSnapshots", "DeleteSnapshot",
    *ec2_resources_with_boto3.ACTIONS,
]


def main():
    work = pathlib.Path(sys.argv[2])
    clients = {"boto3": (ec2_with_boto3, lambda proxy: ec2_with_boto3.client(proxy.url)), "awscli": (ec2_with_awscli, lambda proxy: proxy.url),
               "libcloud": (ec2_with_libcloud, lambda proxy: ec2_with_libcloud.driver(proxy.port))}
    # awscli has botocore's model of every action, so boto3 alone covers the further ones.
    further = set(ec2_resources_with_boto3.ACTIONS)
    no_call = {"awscli": further, "libcloud": ec2_with_libcloud.NO_CALL | further}
    ec2_with_boto3.CASES.extend(ec2_resources_with_boto3.CASES)
    run_checks("ec2", ec2_model, clients, no_call, ACTIONS,
         more=lambda results, emulator: run_more(results, emulator, work))


def run_more(results, emulator, work):
    compare_with_moto(results, emulator, work)
    ec2_libcloud_contract.run(results, pathlib.Path(sys.argv[1]), work)


def compare_with_moto(results, emulator, work):
    try:
        moto = Moto(sys.executable, free_port(), work / "moto.log")
    except RuntimeError as error:
        results.check("moto starts", [str(error)])
        return
    proxy = RecordingProxy("comparison", emulator.address, ec2_model.check_exchange)
    try:
        emulator.control("POST", "reset")
        ec2_moto_comparison.run(results, proxy.url, moto.url)
        check_responses(results, proxy)
    finally:
        proxy.close()
        moto.stop()


if __name__ == "__main__":
    main()
