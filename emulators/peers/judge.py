"""Runs the foreign clients against the emulator and says what they found: judge.py <emulator> <work directory>

One line for each case, then the table of actions and clients, then the differences from moto.
"""

import pathlib
import sys

import differential
import model
import with_awscli
import with_boto3
import with_libcloud
from court import hold, judge_replies
from program import Moto, free_port
from tap import Tap

# What the emulator promises to speak, in the order of a life; its own list is checked against it.
ACTIONS = [
    "RunInstances", "DescribeInstances", "StopInstances", "StartInstances", "RebootInstances", "TerminateInstances",
    "ModifyInstanceAttribute", "CreateTags", "DeleteTags", "DescribeTags", "DescribeImages", "DescribeInstanceTypes",
    "DescribeVolumes", "DescribeNetworkInterfaces", "DescribeAvailabilityZones", "DescribeSubnets",
    "DescribeSecurityGroups", "GetConsoleOutput", "CreateImage", "DescribeInstanceStatus", "DescribeInstanceAttribute",
    "DescribeAddresses",
]


def main():
    work = pathlib.Path(sys.argv[2])
    clients = {"boto3": (with_boto3, lambda tap: with_boto3.client(tap.url)), "awscli": (with_awscli, lambda tap: tap.url),
               "libcloud": (with_libcloud, lambda tap: with_libcloud.driver(tap.port))}
    hold("ec2", model, clients, {"libcloud": with_libcloud.NO_CALL}, ACTIONS,
         more=lambda score, emulator: compare_with_moto(score, emulator, work))


def compare_with_moto(score, emulator, work):
    try:
        moto = Moto(sys.executable, free_port(), work / "moto.log")
    except RuntimeError as error:
        score.check("moto starts", [str(error)])
        return
    tap = Tap("differential", emulator.address, model.judge)
    try:
        emulator.control("POST", "reset")
        differential.run(score, tap.url, moto.url)
        judge_replies(score, tap)
    finally:
        tap.close()
        moto.stop()


if __name__ == "__main__":
    main()
