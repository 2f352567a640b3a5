/**
 * The type checker. It determines the type of an expression and reports everything that can never succeed, with the
 * messages of cel-go. Nodes of type dyn are checked during evaluation.
 *
 * Objects with a schema are checked by their fields here; at run time they are maps.
 */
import type { CallExpr, ConstExpr, Expr, FoldExpr, ListExpr, MapExpr, MessageExpr, SelectExpr } from '#cel/ast.ts';
import { CheckBudget, TypeTooComplexError } from '#cel/limits/check-budget.ts';
import { Annotations, type CheckedTree } from '#cel/check/annotations.ts';
import { formatSignature, formatType, typeString } from '#cel/check/format-type.ts';
import type { Element } from '#cel/check/literals.ts';
import { findLiteralProblems, findMixedElement } from '#cel/check/literals.ts';
import { resolveOverload } from '#cel/check/resolve-overload.ts';
import type { Scope } from '#cel/check/scope.ts';
import { findLocal, findName } from '#cel/check/scope.ts';
import { ERROR, isDyn, isDynOrError } from '#cel/check/type-relations.ts';
import { Unifier } from '#cel/check/unifier.ts';
import type { Environment } from '#cel/environment.ts';
import type { Overload } from '#cel/library.ts';
import { qualifiedName, rootName } from '#cel/parse/qualified-name.ts';
import type { CelProblem } from '#cel/syntax-error.ts';
import { MAX_PROBLEMS } from '#cel/syntax-error.ts';
import type { CelType } from '#cel/type.ts';
import { BOOL, BYTES, DOUBLE, DYN, INT, NULL, STRING, UINT, listOf, mapOf, optionalOf } from '#cel/type.ts';
import { CelUint } from '#cel/value.ts';

export interface CheckOptions {
  /** Allows elements of different types in one list or map literal. CEL allows them; Kubernetes does not. */
  readonly mixedLiterals?: boolean;
  /** The budget, if several expressions share one. */
  readonly checkBudget?: CheckBudget;
  /** Keeps the types of all nodes in `Checked.checked`. */
  readonly annotate?: boolean;
}

export interface Checked {
  /** The type of the result; dyn if there are problems. */
  readonly type: CelType;
  readonly problems: readonly CelProblem[];
  /** The number of further problems, which are not in `problems`. */
  readonly more: number;
  /** Set if `annotate` was set and there are no problems. */
  readonly checked?: CheckedTree | undefined;
}

export function check(tree: Expr, environment: Environment, options: CheckOptions = {}): Checked {
  return new Checker(environment, options).run(tree);
}

class Checker {
  readonly #environment: Environment;
  readonly #options: CheckOptions;
  readonly #checkBudget: CheckBudget;
  readonly #unifier: Unifier;
  readonly #problems: CelProblem[] = [];
  #more = 0;
  #scope: Scope | undefined;
  /**
   * Nodes for the checks at the end: calls with a literal argument such as `duration('x')`, and the elements of
   * literals.
   */
  readonly #literalCalls: CallExpr[] = [];
  readonly #literals: (readonly Element[])[] = [];
  #inFormat = 0;
  #annotations: Annotations | undefined;

  constructor(environment: Environment, options: CheckOptions) {
    this.#environment = environment;
    this.#options = options;
    this.#checkBudget = options.checkBudget ?? new CheckBudget();
    this.#unifier = new Unifier(this.#checkBudget);
  }

  run(tree: Expr): Checked {
    if (this.#options.annotate) {
      this.#annotations = new Annotations(tree, (type) => this.#unifier.resolve(type, 'dyn'));
    }
    try {
      const type = this.#unifier.resolve(this.#check(tree), 'dyn');
      if (this.#problems.length === 0) this.#checkLiterals();
      if (this.#problems.length === 0) return { type, problems: [], more: 0, checked: this.#annotations };
      return { type: DYN, problems: this.#problems, more: this.#more };
    } catch (error) {
      if (!(error instanceof TypeTooComplexError)) throw error;
      const whole = { at: -1, message: 'expression is too complex to be type checked' };
      return { type: DYN, problems: this.#problems.length > 0 ? this.#problems : [whole], more: this.#more };
    }
  }

  #check(expr: Expr): CelType {
    const type = this.#checkNode(expr);
    this.#annotations?.setType(expr, type);
    return type;
  }

  #checkNode(expr: Expr): CelType {
    switch (expr.kind) {
      case 'const':
        return typeOfConst(expr);
      case 'ident':
        return findName(this.#environment, this.#scope, expr.name) ?? this.#reportUndeclared(expr.at, expr.name);
      case 'select':
        return this.#checkSelect(expr);
      case 'call':
        return this.#checkCall(expr);
      case 'list':
        return this.#checkList(expr);
      case 'map':
        return this.#checkMap(expr);
      case 'message':
        return this.#rejectMessage(expr);
      case 'fold':
        return this.#checkFold(expr);
    }
  }

  #checkSelect(expr: SelectExpr): CelType {
    const named = this.#findQualifiedVariable(expr);
    if (named) return named;
    const field = this.#checkField(expr.at, expr.operand, expr.field, false);
    return expr.test ? BOOL : this.#unifier.resolve(field);
  }

  #findQualifiedVariable(expr: SelectExpr): CelType | undefined {
    const name = this.#globalName(expr);
    return name === undefined ? undefined : findName(this.#environment, undefined, name);
  }

  /** Returns undefined if a fold variable shadows the first part of the name. */
  #globalName(expr: Expr): string | undefined {
    const name = qualifiedName(expr);
    return name === undefined || findLocal(this.#scope, rootName(name)) ? undefined : name;
  }

  #checkField(at: number, operand: Expr, field: string, optional: boolean): CelType {
    const whole = this.#unifier.resolve(this.#check(operand));
    const target = whole.kind === 'optional' ? whole.of : whole;
    const type = this.#fieldType(at, target, field);
    return whole.kind === 'optional' || optional ? optionalOf(type) : type;
  }

  #fieldType(at: number, target: CelType, field: string): CelType {
    switch (target.kind) {
      case 'map':
        return target.value;
      case 'object':
        return target.field(field) ?? this.#report(at, `undefined field '${field}'`);
      case 'param':
        this.#unifier.isAssignable(DYN, target);
        return DYN;
      default:
        if (!isDynOrError(target)) {
          this.#report(at, `type '${formatType(target)}' does not support field selection`);
        }
        return DYN;
    }
  }

  #checkCall(expr: CallExpr): CelType {
    if (expr.name === '_?._') return this.#checkOptionalSelect(expr);
    this.#inFormat += expr.name === 'format' ? 1 : 0;
    const type = this.#checkFunction(expr);
    this.#inFormat -= expr.name === 'format' ? 1 : 0;
    if (expr.args[0]?.kind === 'const') this.#literalCalls.push(expr);
    return type;
  }

  #checkOptionalSelect(expr: CallExpr): CelType {
    const [operand, field] = expr.args;
    if (!operand || field?.kind !== 'const' || typeof field.value !== 'string') {
      return this.#report(field?.at ?? expr.at, 'unsupported optional field selection');
    }
    return this.#unifier.resolve(this.#checkField(expr.at, operand, field.value, true));
  }

  #checkFunction(expr: CallExpr): CelType {
    const args = expr.args.map((arg) => this.#check(arg));
    const name = expr.name.startsWith('.') ? expr.name.slice(1) : expr.name;
    const { functions } = this.#environment;
    if (!expr.target) {
      return functions.has(name) ? this.#resolve(expr, name, args, false) : this.#reportUndeclared(expr.at, name);
    }
    const namespace = this.#globalName(expr.target);
    const qualified = namespace === undefined ? undefined : `${namespace}.${name}`;
    if (qualified !== undefined && functions.has(qualified)) return this.#resolve(expr, qualified, args, false);

    const target = this.#check(expr.target);
    if (!functions.has(name)) return this.#reportUndeclared(expr.at, name);
    return this.#resolve(expr, name, [target, ...args], true);
  }

  #resolve(expr: CallExpr, name: string, args: readonly CelType[], member: boolean): CelType {
    // For these two operators the message names the operand that is wrong.
    if (name === '_&&_' || name === '_||_') {
      const wrong = args.filter((type, i) => !this.#expect(expr.args[i]!.at, BOOL, type));
      this.#annotations?.setCall(expr, { name, member, overloads: this.#environment.functions.get(name) ?? [] });
      return wrong.length === 0 ? BOOL : ERROR;
    }
    const matching: Overload[] | undefined = this.#annotations && [];
    const known = this.#environment.functions.get(name) ?? [];
    const found = resolveOverload(this.#unifier, known, args, member, matching);
    if (matching !== undefined) this.#annotations?.setCall(expr, { name, member, overloads: matching });
    if (found) return found;
    return this.#report(expr.at, () => {
      const types = args.map((arg) => this.#unifier.resolve(arg, 'dyn'));
      return `found no matching overload for '${name}' applied to '${formatSignature(types, member)}'`;
    });
  }

  #checkList(expr: ListExpr): CelType {
    const elements: Element[] = [];
    let joined: CelType | undefined;
    for (const { value, optional } of expr.elements) {
      const type = this.#checkElement(value, optional);
      elements.push({ at: value.at, type });
      joined = this.#joinTypes(value.at, joined, type);
    }
    this.#recordLiteral(elements);
    return listOf(joined ?? this.#unifier.newParam());
  }

  #checkMap(expr: MapExpr): CelType {
    const keys: Element[] = [];
    const values: Element[] = [];
    let key: CelType | undefined;
    let value: CelType | undefined;
    for (const entry of expr.entries) {
      const keyType = this.#check(entry.key);
      keys.push({ at: entry.key.at, type: keyType });
      key = this.#joinTypes(entry.key.at, key, keyType);
      const valueType = this.#checkElement(entry.value, entry.optional);
      values.push({ at: entry.value.at, type: valueType });
      value = this.#joinTypes(entry.value.at, value, valueType);
    }
    this.#recordLiteral(keys);
    this.#recordLiteral(values);
    return mapOf(key ?? this.#unifier.newParam(), value ?? this.#unifier.newParam());
  }

  #checkElement(expr: Expr, optional: boolean): CelType {
    const type = this.#check(expr);
    if (!optional) return type;
    if (type.kind === 'optional') return type.of;
    if (!isDyn(type)) this.#reportMismatch(expr.at, optionalOf(type), type);
    return type;
  }

  #joinTypes(at: number, before: CelType | undefined, type: CelType): CelType {
    if (before === undefined) return type;
    if (this.#unifier.isAssignable(before, type)) return this.#unifier.mostGeneral(before, type);
    return this.#options.mixedLiterals ? DYN : this.#reportMismatch(at, before, type);
  }

  /** Reports why the name is not a message type. No environment has message types. */
  #rejectMessage({ at, name }: MessageExpr): CelType {
    const type = findName(this.#environment, this.#scope, name);
    if (!type) return this.#reportUndeclared(at, name);
    if (type.kind !== 'type') return this.#report(at, `'${formatType(type)}' is not a type`);
    return this.#report(at, `'${typeString(type.of)}' is not a message type`);
  }

  #checkFold(expr: FoldExpr): CelType {
    const range = this.#unifier.resolve(this.#check(expr.range));
    const accumulator = this.#check(expr.start);
    const outside = this.#scope;
    const around = { name: expr.accumulator, type: accumulator, outer: outside };
    const [first, second] = this.#loopTypes(expr, range);

    this.#scope = { name: expr.variable, type: first, outer: around };
    if (expr.second !== undefined) this.#scope = { name: expr.second, type: second, outer: this.#scope };
    this.#expect(expr.condition.at, BOOL, this.#check(expr.condition));
    this.#expect(expr.step.at, accumulator, this.#check(expr.step));

    this.#scope = around;
    const result = this.#check(expr.result);
    this.#scope = outside;
    return this.#unifier.resolve(result);
  }

  #loopTypes(expr: FoldExpr, range: CelType): [CelType, CelType] {
    if (range.kind === 'list') return expr.second === undefined ? [range.element, DYN] : [INT, range.element];
    if (range.kind === 'map') return [range.key, range.value];
    if (range.kind === 'param' || isDynOrError(range)) {
      this.#unifier.isAssignable(DYN, range);
      return [DYN, DYN];
    }
    const what = `expression of type '${formatType(range)}'`;
    this.#report(expr.range.at, `${what} cannot be range of a comprehension (must be list, map, or dynamic)`);
    return [ERROR, ERROR];
  }

  #recordLiteral(elements: readonly Element[]): void {
    if (!this.#options.mixedLiterals && this.#inFormat === 0 && elements.length > 1) this.#literals.push(elements);
  }

  #checkLiterals(): void {
    for (const problem of findLiteralProblems(this.#literalCalls, this.#environment, this.#checkBudget)) {
      this.#report(problem.at, problem.message);
    }
    for (const elements of this.#literals) {
      const mixed = findMixedElement(elements, this.#unifier);
      if (mixed) this.#reportMismatch(mixed.at, mixed.expected, mixed.found);
    }
  }

  #expect(at: number, expected: CelType, found: CelType): boolean {
    if (this.#unifier.isAssignable(expected, found)) return true;
    this.#reportMismatch(at, expected, found);
    return false;
  }

  #reportMismatch(at: number, expected: CelType, found: CelType): CelType {
    return this.#report(at, () => `expected type '${formatType(expected)}' but found '${formatType(found)}'`);
  }

  #reportUndeclared(at: number, name: string): CelType {
    return this.#report(at, `undeclared reference to '${name}' (in container '')`);
  }

  /** Takes a function if the message is expensive to build; it is called only if the problem is kept. */
  #report(at: number, message: string | (() => string)): CelType {
    if (this.#problems.length >= MAX_PROBLEMS) this.#more += 1;
    else this.#problems.push({ at, message: typeof message === 'string' ? message : message() });
    return ERROR;
  }
}

function typeOfConst({ value }: ConstExpr): CelType {
  if (value === null) return NULL;
  if (value instanceof CelUint) return UINT;
  if (value instanceof Uint8Array) return BYTES;
  switch (typeof value) {
    case 'boolean':
      return BOOL;
    case 'bigint':
      return INT;
    case 'number':
      return DOUBLE;
    default:
      return STRING;
  }
}
