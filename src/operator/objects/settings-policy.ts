/**
 * The policy that validates the KubeVirt object beyond its schema: unknown fields, globs, the default machine type, the
 * bandwidth of migrations, and that there is only one such object. It is a policy and not a webhook, so that an
 * installation on a bare cluster can create the object before any of our processes runs. Existing errors are not
 * reported again, so that other fields can be changed.
 *
 * The variables of the policy come in two groups: values of the object, each also as it is stored (`old_`), then lists
 * of errors, with the messages of api/validation/.
 */
import { kubevirtSpec } from '#api/kubevirt/kind.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { KUBEVIRT_GROUP, KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { fieldsNotYetSupported } from '#api/validation/devices/unsupported.ts';
import { INVALID_QUANTITY_TEXT } from '#kube/quantity.ts';
import type { Schema } from '#kube/schema.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { buildPolicy, matchWrites } from '#operator/objects/policy.ts';

interface Variable {
  readonly name: string;
  readonly expression: string;
}

const CONFIGURATION = 'spec.configuration';
const AMD64 = `${CONFIGURATION}.architectureConfiguration.amd64`;

/** Matches valid globs of Go's path.Match (api/validation/glob.ts). */
const CHARACTER = String.raw`(?:[^\]\\-]|\\[\s\S])`;
const RANGE = `${CHARACTER}(?:-${CHARACTER})?`;
const FIRST_RANGE = String.raw`(?:[^\]\\^-]|\\[\s\S])(?:-${CHARACTER})?`;
const GLOB = String.raw`^(?:[^\[\\]|\\[\s\S]|\[(?:\^(?:${RANGE})+|${FIRST_RANGE}(?:${RANGE})*)\])*$`;
/**
 * Matches globs that cannot be converted to a regular expression by replacing characters: with escapes, or with * or ?
 * in a class.
 */
const INTRICATE_GLOB = String.raw`\\|\[[^\]]*[*?\[]`;
const MACHINE_TYPE = '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$';

/** Returns a CEL string literal. */
const text = (value: string) => `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
const texts = (values: readonly string[]) => `[${values.map(text).join(', ')}]`;

/**
 * Returns the last field of a path, which is the name of its variable; it is unique among the objects of the schema.
 */
const fieldOf = (path: string) => path.slice(path.lastIndexOf('.') + 1);
const parentOf = (path: string) => path.slice(0, path.lastIndexOf('.'));

/** Returns the variables of the value at a path, whose parent has variables; `none` stands for a missing value. */
function valueAt(name: string, path: string, none: string): Variable[] {
  const field = fieldOf(path);
  return ['', 'old_'].map((old) => {
    const parent = `variables.${old}${fieldOf(parentOf(path))}`;
    return { name: `${old}${name}`, expression: `'${field}' in ${parent} ? dyn(${parent}.${field}) : dyn(${none})` };
  });
}

const childObjects = ({ properties = {} }: Schema): [string, Schema][] =>
  Object.entries(properties).filter(([, { properties: children }]) => children !== undefined);

/** Returns the variables of all objects below one of the schema, parents first. */
function objectsBelow(schema: Schema, path: string): Variable[] {
  return childObjects(schema).flatMap(([field, child]) => {
    const below = `${path}.${field}`;
    return [...valueAt(field, below, '{}'), ...objectsBelow(child, below)];
  });
}

const values: readonly Variable[] = [
  { name: 'spec', expression: 'has(object.spec) ? dyn(object.spec) : dyn({})' },
  {
    name: 'old_spec',
    expression: "request.operation == 'UPDATE' && has(oldObject.spec) ? dyn(oldObject.spec) : dyn({})",
  },
  ...objectsBelow(kubevirtSpec, 'spec'),
  ...valueAt('machines', `${CONFIGURATION}.emulatedMachines`, '[]'),
  ...valueAt('amd64_machines', `${AMD64}.emulatedMachines`, '[]'),
  ...valueAt('luns', `${CONFIGURATION}.directLuns`, '[]'),
  ...valueAt('specialManagedDevices', `${CONFIGURATION}.specialManagedDevices`, '[]'),
  ...valueAt('bandwidth', `${CONFIGURATION}.migrations.bandwidthPerMigration`, '0'),
  ...valueAt('machine_type', `${CONFIGURATION}.machineType`, "''"),
  ...valueAt('amd64_machine_type', `${AMD64}.machineType`, "''"),
  ...['', 'old_'].flatMap(effectiveMachine),
  { name: 'glob', expression: text(GLOB) },
];

/** Returns the variables of the default machine type with its path, and of the globs of the allowed types. */
function effectiveMachine(old: string): Variable[] {
  const [type, amd64] = [`variables.${old}machine_type`, `variables.${old}amd64_machine_type`];
  const defaults = texts(configurationOf(undefined).emulatedMachines);
  return [
    {
      name: `${old}default`,
      expression: `${type} != '' ? ['${CONFIGURATION}.machineType', string(${type})] : ['${AMD64}.machineType', string(${amd64})]`,
    },
    {
      name: `${old}allowed`,
      expression: `'emulatedMachines' in variables.${old}configuration ? variables.${old}machines : 'emulatedMachines' in variables.${old}amd64 ? variables.${old}amd64_machines : dyn(${defaults})`,
    },
  ];
}

/** Returns an expression for the errors about fields of `map` that the schema does not have. */
function unknownFields(
  { properties = {} }: Schema,
  { map, path, shownPath = text(path), isStored }: { map: string; path: string; shownPath?: string; isStored: string },
): string {
  const planned = fieldsNotYetSupported(path);
  const why =
    planned.length === 0 ? "'unknown field'" : `(k in ${texts(planned)} ? 'is not supported yet' : 'unknown field')`;
  const isUnknown = `!(k in ${texts(Object.keys(properties))}) && ${map}[k] != null && !(${isStored})`;
  return `${map}.filter(k, ${isUnknown}).map(k, ${shownPath} + '.' + k + ': Forbidden: ' + ${why})`;
}

/** Returns a variable with the errors about unknown fields for each object of the schema, and each list of objects. */
function unknownIn(schema: Schema, path: string): Variable[] {
  const [name, map] = [`unknown_${fieldOf(path)}`, `variables.${fieldOf(path)}`];
  const own = unknownFields(schema, { map, path, isStored: `k in variables.old_${fieldOf(path)}` });
  const lists = Object.entries(schema.properties ?? {}).flatMap(([field, { items }]) =>
    items?.properties === undefined ? [] : [unknownInFirst(items, `${path}.${field}`)],
  );
  const below = childObjects(schema).flatMap(([field, child]) => unknownIn(child, `${path}.${field}`));
  return [{ name, expression: own }, ...lists, ...below];
}

/** Reports the first invalid item only, because CEL cannot flatten lists. */
function unknownInFirst(items: Schema, path: string): Variable {
  const list = `variables.${fieldOf(path)}`;
  const shownPath = `'${path}[' + string(${list}.indexOf(item)) + ']'`;
  const isStored = `item in variables.old_${fieldOf(path)}`;
  const errors = unknownFields(items, { map: 'dyn(item)', path, shownPath, isStored });
  return {
    name: `unknown_${fieldOf(path)}`,
    expression: `(${list}.map(item, ${errors}).filter(found, found.size() > 0) + [[]])[0]`,
  };
}

function malformedGlobs(name: string, path: string): Variable {
  const list = `variables.${name}`;
  const shown = `'${path}[' + string(${list}.indexOf(g)) + ']: Invalid value: "' + g + '": syntax error in pattern'`;
  return {
    name: `malformed_${name}`,
    expression: `${list}.filter(g, !g.matches(variables.glob) && !(g in variables.old_${name})).map(g, ${shown})`,
  };
}

/** Refuses a default that VMs may not use: VMs without a type could not start. Intricate globs count as matching. */
function unsupportedDefault(): Variable {
  const [field, type] = ['variables.default[0]', 'variables.default[1]'];
  const escapes = ['.', '+', '(', ')', '{', '}', '|', '$', '^'].map(
    (sign) => `.replace('${sign}', ${text(`\\${sign}`)})`,
  );
  const regex = `'^' + g${escapes.join('')}.replace(${text('[\\^')}, '[^').replace('*', '.*').replace('?', '.') + '$'`;
  const matches = `g.matches(${text(INTRICATE_GLOB)}) || (g.matches(variables.glob) && ${type}.matches(${regex}))`;
  const isAllowed = `${type}.matches(${text(MACHINE_TYPE)}) && variables.allowed.exists(g, ${matches})`;
  const isStored = 'variables.default == variables.old_default && variables.allowed == variables.old_allowed';
  const shown = `${field} + ': Invalid value: "' + ${type} + '": ' + ${field} + ' is not supported: ' + ${type} + ' (allowed values: [' + variables.allowed.join(' ') + '])'`;
  return {
    name: 'unsupported_default',
    expression: `${type} == '' || (${isAllowed}) || (${isStored}) ? [] : [${shown}]`,
  };
}

function invalidBandwidth(): Variable {
  const value = 'variables.bandwidth';
  const shown = `(type(${value}) == string ? '"' + string(${value}) + '"' : string(${value}))`;
  const error = (detail: string) =>
    `['${CONFIGURATION}.migrations.bandwidthPerMigration: Invalid value: ' + ${shown} + ${text(`: ${detail}`)}]`;
  const malformed = error(INVALID_QUANTITY_TEXT);
  const negative = `quantity(string(${value})).isLessThan(quantity('0')) ? ${error('must be greater than or equal to 0')} : []`;
  return {
    name: 'invalid_bandwidth',
    expression: `${value} == variables.old_bandwidth ? [] : !isQuantity(string(${value})) ? ${malformed} : ${negative}`,
  };
}

function secondObject(): Variable {
  const isOurs = `object.metadata.namespace == '${SYSTEM_NAMESPACE}' && has(object.metadata.name) && object.metadata.name == '${KUBEVIRT_NAME}'`;
  const error = `metadata.name: Forbidden: only one KubeVirt object is allowed, and it exists: ${SYSTEM_NAMESPACE}/${KUBEVIRT_NAME}`;
  return { name: 'second', expression: `request.operation != 'CREATE' || (${isOurs}) ? [] : ['${error}']` };
}

const errors: readonly Variable[] = [
  ...unknownIn(kubevirtSpec, 'spec'),
  malformedGlobs('machines', `${CONFIGURATION}.emulatedMachines`),
  malformedGlobs('amd64_machines', `${AMD64}.emulatedMachines`),
  malformedGlobs('luns', `${CONFIGURATION}.directLuns`),
  unsupportedDefault(),
  invalidBandwidth(),
  secondObject(),
];
const allErrors = { name: 'errors', expression: errors.map(({ name }) => `variables.${name}`).join(' + ') };

export const settingsPolicy: readonly DesiredObject[] = buildPolicy('selfsame-settings', {
  resourceRules: [matchWrites(KUBEVIRT_GROUP, 'kubevirts')],
  variables: [...values, ...errors, allErrors],
  validations: [
    {
      expression: 'variables.errors.size() == 0',
      messageExpression: "variables.errors.join(', ')",
      reason: 'Invalid',
    },
  ],
});
