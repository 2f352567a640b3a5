/**
 * Runs the cases of cel-go's own checker tests that need no protobuf messages beyond one with plain fields. Excluded
 * are containers, message literals, wrappers, enums, and types with several parameters.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tests } from '@bufbuild/cel-spec/testdata/checking.js';
import { check } from '#cel/check/check.ts';
import { formatType } from '#cel/check/format-type.ts';
import type { Environment } from '#cel/environment.ts';
import { createEnvironment } from '#cel/environment.ts';
import type { Overload } from '#cel/library.ts';
import { parse } from '#cel/parse/parse.ts';
import { optionalLibrary } from '#cel/standard/optional.ts';
import { standardLibrary } from '#cel/standard/standard.ts';
import { describeProblems } from '#cel/syntax-error.ts';
import type { CelType, ObjectType } from '#cel/type.ts';
import * as types from '#cel/type.ts';

interface Suite {
  suites?: Suite[];
  tests?: Case[];
}

interface Case {
  original: { expr: string; container?: string; typeEnv?: unknown };
  type?: string;
  error?: string;
}

type Json = Record<string, unknown>;

const PRIMITIVES: Record<string, CelType> = {
  BOOL: types.BOOL,
  INT64: types.INT,
  UINT64: types.UINT,
  DOUBLE: types.DOUBLE,
  STRING: types.STRING,
  BYTES: types.BYTES,
  TIMESTAMP: types.TIMESTAMP,
  DURATION: types.DURATION,
};

const JSON_MESSAGES: Record<string, CelType> = {
  'google.protobuf.Struct': types.mapOf(types.STRING, types.DYN),
  'google.protobuf.ListValue': types.listOf(types.DYN),
  'google.protobuf.Value': types.DYN,
};

const NESTED: CelType = {
  kind: 'object',
  name: 'google.expr.proto3.test.TestAllTypes.NestedMessage',
  field: (name) => (name === 'bb' ? types.INT : undefined),
};

const FIELDS: Record<string, CelType> = {
  single_int32: types.INT,
  single_int64: types.INT,
  single_value: types.DYN,
  single_struct: types.mapOf(types.STRING, types.DYN),
  single_nested_message: NESTED,
  repeated_int32: types.listOf(types.INT),
  repeated_int64: types.listOf(types.INT),
  map_int64_nested_type: types.mapOf(types.INT, NESTED),
};

const ALL_TYPES: ObjectType = {
  kind: 'object',
  name: 'google.expr.proto3.test.TestAllTypes',
  field: (name) => FIELDS[name],
};

/** Thrown for types that Selfsame does not support: protobuf messages, wrappers, types with several parameters. */
class UnsupportedTypeError extends Error {}

function messageType(name: string): CelType | undefined {
  return name === ALL_TYPES.name ? ALL_TYPES : JSON_MESSAGES[name];
}

function readType(json: Json): CelType {
  const [[kind, value] = ['', undefined]] = Object.entries(json);
  const inner = value as Json;
  switch (kind) {
    case 'primitive':
    case 'wellKnown':
      return PRIMITIVES[value as string] ?? rejectType(json);
    case 'dyn':
      return types.DYN;
    case 'null':
      return types.NULL;
    case 'typeParam':
      return types.param(value as string);
    case 'listType':
      return types.listOf(readType(inner['elemType'] as Json));
    case 'mapType':
      return types.mapOf(readType(inner['keyType'] as Json), readType(inner['valueType'] as Json));
    case 'messageType':
      return messageType(value as string) ?? rejectType(json);
    case 'abstractType':
      return inner['name'] === 'optional_type'
        ? types.optionalOf(readType((inner['parameterTypes'] as Json[])[0]!))
        : rejectType(json);
    default:
      return rejectType(json);
  }
}

function rejectType(json: Json): never {
  throw new UnsupportedTypeError(JSON.stringify(json));
}

function readOverload(json: Json): Overload {
  return {
    id: json['overloadId'] as string,
    member: json['isInstanceFunction'] === true,
    args: ((json['params'] as Json[] | undefined) ?? []).map(readType),
    result: readType(json['resultType'] as Json),
    call: () => null,
  };
}

/** Returns the environment of cel-go's tests, which compare only numbers of the same type. */
function baseEnvironment(): Environment {
  const environment = createEnvironment([standardLibrary, optionalLibrary], {
    is: types.STRING,
    ii: types.INT,
    iu: types.UINT,
    iz: types.BOOL,
    id: types.DOUBLE,
    ix: types.NULL,
    ib: types.BYTES,
  });
  const functions = new Map<string, readonly Overload[]>(environment.functions);
  for (const name of ['_<_', '_<=_', '_>_', '_>=_']) {
    const overloads = functions.get(name) ?? [];
    functions.set(
      name,
      overloads.filter(({ args }) => formatType(args[0]!) === formatType(args[1]!)),
    );
  }
  const call = (): null => null;
  functions.set('fg_s', [{ id: 'fg_s_0', member: false, args: [], result: types.STRING, call }]);
  functions.set('fi_s_s', [{ id: 'fi_s_s_0', member: true, args: [types.STRING], result: types.STRING, call }]);
  return { ...environment, functions };
}

function environmentOf({ original }: Case): Environment {
  const base = baseEnvironment();
  const functions = new Map(base.functions);
  const variables = new Map(base.variables);
  for (const declaration of (original.typeEnv ?? []) as Json[]) {
    const name = declaration['name'] as string;
    const ident = declaration['ident'] as Json | undefined;
    if (ident) variables.set(name, readType(ident['type'] as Json));
    const declared = declaration['function'] as Json | undefined;
    if (declared)
      functions.set(name, [...(functions.get(name) ?? []), ...(declared['overloads'] as Json[]).map(readOverload)]);
  }
  return { ...base, functions, variables };
}

/** Returns undefined if the case needs an unsupported feature. */
function findEnvironment(one: Case): Environment | undefined {
  const { expr, container } = one.original;
  // The expectations of these cases come from a parser without optional syntax.
  if (one.error?.includes('unsupported syntax')) return undefined;
  if (container !== undefined || expr.includes('google.') || expr.includes('_wrapper')) return undefined;
  try {
    return environmentOf(one);
  } catch (error) {
    if (error instanceof UnsupportedTypeError) return undefined;
    throw error;
  }
}

function casesOf(suite: Suite): Case[] {
  return [...(suite.tests ?? []), ...(suite.suites ?? []).flatMap(casesOf)];
}

test('passes the cases of cel-go that need no protobuf messages', (t) => {
  const all = casesOf(tests);
  let passed = 0;
  const failed: string[] = [];
  for (const one of all) {
    const environment = findEnvironment(one);
    const { expr } = one.original;
    if (!environment) continue;
    const { type, problems } = check(parse(expr, environment.macros), environment, { mixedLiterals: true });
    const found = problems.length > 0 ? describeProblems(expr, problems) : formatType(type);
    const want = one.error ?? one.type;
    if (found === want) passed += 1;
    else failed.push(`${expr}\n  want ${want}\n  found ${found}`);
  }
  t.diagnostic(`cel-go checker cases: ${passed} of ${all.length}`);
  assert.deepEqual(failed, []);
  assert.ok(passed >= 90, `only ${passed} cases were selected`);
});
