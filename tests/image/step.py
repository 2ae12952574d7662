#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Print what a step of a workflow runs.

usage: step.py FILE NAME
"""

import sys

import yaml

with open(sys.argv[1], encoding='utf-8') as file:
    jobs = yaml.safe_load(file)['jobs']
found = [step['run'] for job in jobs.values() for step in job['steps']
         if step.get('name') == sys.argv[2]]
if len(found) != 1:
    sys.exit(f'{sys.argv[1]}: {len(found)} steps of the name {sys.argv[2]}')
print(found[0])
