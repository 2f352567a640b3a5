import assert from 'node:assert/strict';
import { test } from 'node:test';
import { normalise } from '#test/transcripts/normalise.ts';

const cases: Record<string, { output: string; want: string }> = {
  uids: { output: 'uid: 0b4fa061-7c51-42ce-ba0a-b0abf4281a12', want: 'uid: <uid>' },
  'times of the API': {
    output: 'a: "2026-11-15T21:53:07Z"\nb: "2026-11-15T21:53:07.123456Z"\nc: 2026-11-15T21:53:07+01:00',
    want: 'a: "<time>"\nb: "<time>"\nc: <time>',
  },
  'times of describe': { output: 'Start Time:   Sun, 15 Nov 2026 21:53:07 +0000', want: 'Start Time:   <time>' },
  'prefixes of log lines': {
    output: 'E1115 21:53:07.123456   12345 memcache.go:265] oops',
    want: '<time> memcache.go] oops',
  },
  'resource versions in YAML, JSON and describe': {
    output: '  resourceVersion: "12"\n"resourceVersion": "7",\n  Resource Version:  42',
    want: '  resourceVersion: "<rv>"\n"resourceVersion": "<rv>",\n  Resource Version:  <rv>',
  },
  'an empty resource version is kept': { output: '  resourceVersion: ""', want: '  resourceVersion: ""' },
  'generated names': {
    output: 'pod/gen-x7k2p created\ngen-a-b-bcdfg',
    want: 'pod/gen-<suffix> created\ngen-a-b-<suffix>',
  },
  'generated names before an age': {
    output: 'NAME        AGE   NODE\ngen-x7k2p   5s    one',
    want: 'NAME        AGE     NODE\ngen-<suffix>   <age>   one',
  },
  'names of launcher pods': {
    output: 'pod/virt-launcher-web-two-x7k2p virt-launcher-web',
    want: 'pod/virt-launcher-web-two-<suffix> virt-launcher-web',
  },
  'generated MAC addresses, but not given ones': {
    output: '02:10:c8:7e:71:42 02:00:00:00:00:01',
    want: '<mac> 02:00:00:00:00:01',
  },
  'volumes of tokens': { output: 'name: kube-api-access-9xlkb', want: 'name: kube-api-access-<suffix>' },
  'names of events': {
    output: 'sum.g2dhtl8dpbl966fb gen-x7k2p.h4529r7l2fsg8jh8',
    want: 'sum.<suffix> gen-<suffix>.<suffix>',
  },
  tokens: { output: 'token:  eyJhbGciOi.eyJhdWQ_i.a-b_c', want: 'token:  <token>' },
  'the size of a certificate': { output: 'ca.crt:     595 bytes', want: 'ca.crt:     <bytes> bytes' },
  'a given name is not taken for a generated one': { output: 'gen-hello x-bcdfg', want: 'gen-hello x-bcdfg' },
  'the address of the server': { output: 'https://127.0.0.1:34567/api', want: 'https://<server>/api' },
  'the version of kubectl': {
    output:
      'Client Version: v1.32.4-x\nKustomize Version: v5.5.0\nClient Version: version.Info{Major:"1"}\nServer Version: v1.32.0+selfsame.0.1.0',
    want: 'Client Version: <version>\nKustomize Version: <version>\nClient Version: version.Info{<version>}\nServer Version: v1.32.0+selfsame.<version>',
  },
  'the versions of virtctl': {
    output: 'Server Version: version.Info{GitVersion:"v0.1.0", Compiler:"node 24"}',
    want: 'Server Version: version.Info{<version>}',
  },
  'versions and platform of the server': {
    output: '{"goVersion": "node24.1.0", "platform":"linux/amd64"}\nGoVersion:"node24.1.0", Platform:"linux/arm64"',
    want: '{"goVersion": "<version>", "platform":"<platform>"}\nGoVersion:"<version>", Platform:"<platform>"',
  },
  colours: { output: '\u001b[0;32mgreen\u001b[0m', want: 'green' },
  'temporary files of kubectl': { output: 'saved to "/tmp/kubectl-edit-123.yaml"', want: 'saved to "<file>"' },
  'ages in the last column': {
    output: 'NAME   DATA   AGE\na      1      5s\nb      0      2m3s',
    want: 'NAME   DATA   AGE\na      1      <age>\nb      0      <age>',
  },
  'ages of any length in the middle': {
    output: 'NAME   AGE   IP\na      5s    <none>\nb      17s   ::1',
    want: 'NAME   AGE     IP\na      <age>   <none>\nb      <age>   ::1',
  },
  'long ages in the middle': {
    output: 'NAME   AGE     IP\na      5m12s   <none>\nb      51d     ::1',
    want: 'NAME   AGE     IP\na      <age>   <none>\nb      <age>   ::1',
  },
  'ages under a long header': {
    output: 'LAST SEEN   TYPE     REASON\n5s          Normal   Made\n<unknown>   Normal   Gone',
    want: 'LAST SEEN   TYPE     REASON\n<age>       Normal   Made\n<unknown>   Normal   Gone',
  },
  'unknown ages are kept': {
    output: 'NAME   IP       AGE\na      <none>   <unknown>',
    want: 'NAME   IP       AGE\na      <none>   <unknown>',
  },
  'empty cells after an age': {
    output: 'NAME   AGE   USERS   GROUPS\na      5s            staff\nb      5s    ann',
    want: 'NAME   AGE     USERS   GROUPS\na      <age>           staff\nb      <age>   ann',
  },
  'other columns are kept': {
    output: 'NAME   LIMIT   AGE\na      5s      9s',
    want: 'NAME   LIMIT   AGE\na      5s      <age>',
  },
  'how long a job took': {
    output:
      'NAME   STATUS      COMPLETIONS   DURATION   AGE\na      Complete    1/1           1m5s       9s\nb      Suspended   0/1                      9s\n\nDuration:   2m5s',
    want: 'NAME   STATUS      COMPLETIONS   DURATION   AGE\na      Complete    1/1           <age>      <age>\nb      Suspended   0/1                      <age>\n\nDuration:   <age>',
  },
  'when a snapshot was taken': {
    output:
      'NAME   READYTOUSE   CREATIONTIME   ERROR\na      true         2m5s           \nb      false                       late',
    want: 'NAME   READYTOUSE   CREATIONTIME   ERROR\na      true         <age>\nb      false                       late',
  },
  'rows without a header': { output: 'a   1   5s\nb   1   6m', want: 'a   1   <age>\nb   1   <age>' },
  'rows of a watch that outgrew the header': {
    output: 'NAME   DATA   AGE\nlong-name   1     5s',
    want: 'NAME   DATA   AGE\nlong-name   1     <age>',
  },
  'durations in fields are kept': { output: 'Period:   5s', want: 'Period:   5s' },
  'the next table has its own columns': {
    output: 'NAME   AGE\na      5s\n\nNAME   LIMIT\nb      5s  x',
    want: 'NAME   AGE\na      <age>\n\nNAME   LIMIT\nb      5s  x',
  },
  'events of describe': {
    output:
      '  Type    Reason  Age   From      Message\n  ----    ------  ----  ----      -------\n  Normal  Made    12s   selfsame  done',
    want: '  Type    Reason  Age     From      Message\n  ----    ------  ----    ----      -------\n  Normal  Made    <age>   selfsame  done',
  },
  'spaces at the end of lines': { output: 'NAME   NOTE  \na      \n\n', want: 'NAME   NOTE\na' },
};

for (const [name, { output, want }] of Object.entries(cases)) {
  test(`normalise: ${name}`, () => {
    assert.equal(normalise(output), want);
    assert.equal(normalise(want), want, 'a normalised text does not change');
  });
}
