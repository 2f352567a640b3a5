import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAccept } from '#engine/request/accept-header.ts';
import { negotiateRepresentation } from '#engine/tables/negotiate-representation.ts';

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const TABLE_BETA = 'application/json;as=Table;v=v1beta1;g=meta.k8s.io';
const PARTIAL = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io';
const PROTOBUF = 'application/vnd.kubernetes.protobuf';

/** kind, version, encoding, and `list` and `pretty` if set. */
const cases: Record<string, { accept: string; want: string }> = {
  'no header selects JSON': { accept: '', want: 'json v1 json' },
  'any type selects JSON': { accept: '*/*', want: 'json v1 json' },
  'a single star selects JSON': { accept: '*', want: 'json v1 json' },
  'any application type selects JSON': { accept: 'application/*', want: 'json v1 json' },
  'a charset is ignored': { accept: 'application/json; charset=utf-8', want: 'json v1 json' },
  'YAML is supported': { accept: 'application/yaml', want: 'yaml v1 yaml' },
  'kubectl get requests tables, newest version first': {
    accept: `${TABLE},${TABLE_BETA},application/json`,
    want: 'table v1 json',
  },
  'an old kubectl requests beta tables': { accept: `${TABLE_BETA},application/json`, want: 'table v1beta1 json' },
  'quality takes precedence over order': { accept: `${TABLE};q=0.1,application/yaml;q=0.9`, want: 'yaml v1 yaml' },
  'a type with quality 0 is not used': { accept: `${TABLE};q=0,application/json`, want: 'json v1 json' },
  'a specific type takes precedence over a wildcard of the same quality': {
    accept: '*/*,application/yaml',
    want: 'yaml v1 yaml',
  },
  'a wildcard of higher quality takes precedence': { accept: '*/*,application/yaml;q=0.5', want: 'json v1 json' },
  'a table of an unknown version falls back to JSON': {
    accept: `${TABLE.replace('v=v1', 'v=v9')},application/json`,
    want: 'json v1 json',
  },
  'an unknown form only is rejected': { accept: TABLE.replace('Table', 'Chair'), want: 'not-acceptable' },
  'a table of another group is rejected': { accept: TABLE.replace('meta', 'other'), want: 'not-acceptable' },
  'a table as YAML': { accept: TABLE.replace('json', 'yaml'), want: 'table v1 yaml' },
  'metadata only': { accept: PARTIAL, want: 'partial v1 json' },
  'a list of metadata only': { accept: PARTIAL.replace('Metadata;', 'MetadataList;'), want: 'partial v1 json list' },
  'protobuf only is rejected': { accept: PROTOBUF, want: 'not-acceptable' },
  'protobuf falls back to JSON': { accept: `${PROTOBUF},application/json`, want: 'json v1 json' },
  'metadata as protobuf falls back to JSON': {
    accept: `${PARTIAL.replace('application/json', PROTOBUF)},${PARTIAL}`,
    want: 'partial v1 json',
  },
  'a watch stream selects JSON': { accept: 'application/json;stream=watch', want: 'json v1 json' },
  'an unknown stream is rejected': { accept: 'application/json;stream=tea', want: 'not-acceptable' },
  'a browser type is rejected': { accept: 'text/html', want: 'not-acceptable' },
  'a browser header selects JSON by its wildcard': {
    accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
    want: 'json v1 json',
  },
  'the header may request pretty output': { accept: 'application/json;pretty=1', want: 'json v1 json pretty' },
  'an invalid header is rejected': { accept: 'a/b/c, , ;;', want: 'not-acceptable' },
};

for (const [name, { accept, want }] of Object.entries(cases)) {
  test(`representation: ${name}`, () => {
    const describe = () => {
      const got = negotiateRepresentation(accept);
      if (got === 'not-acceptable') return got;
      const flags = `${got.list ? ' list' : ''}${got.pretty ? ' pretty' : ''}`;
      return `${got.kind} ${got.version} ${got.encoding}${flags}`;
    };
    assert.equal(describe(), want);
    assert.equal(describe(), want, 'the cached result must be the same');
  });
}

test('more headers than the cache holds get correct results', () => {
  for (let i = 0; i < 1000; i++) {
    const got = negotiateRepresentation(`application/yaml;x=${i}`);
    assert.equal(got === 'not-acceptable' ? got : got.kind, 'yaml');
  }
  assert.equal(negotiateRepresentation('text/html'), 'not-acceptable');
});

test('a header with very many types is truncated', () => {
  assert.equal(parseAccept('a/b,'.repeat(10_000)).length, 32);
});
