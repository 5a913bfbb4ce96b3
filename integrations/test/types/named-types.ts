import { basename, dirname } from 'node:path'
import ts from 'typescript'

/** Whoever writes a store imports `once-per-key/core`: for the others it is only a name. */
const OPAQUE = new Set(['Store'])

/**
 * The types of the package that a user of an entry can come to name, and that the entry does not export, each with the way to it. A
 * compiler that writes a user's declarations fails there: TS2742, TS2883.
 */
export function findUnexportedTypes(files: readonly string[]): Readonly<Record<string, readonly string[]>> {
  const { program, checker, exports } = readEntries(files)
  const folders = new Set(files.map((file) => dirname(file)))
  // Also by the files that entries share.
  const sources = program.getSourceFiles().filter(({ fileName }) => folders.has(dirname(fileName)))
  const published = new Set(sources.flatMap((source) => [...exportsOf(source, checker).values()]))
  const found = files.map((file, i) => {
    return [
      basename(file),
      new Walk(checker, dirname(file), reachableIn([...(exports[i]?.values() ?? [])], checker), published).missing,
    ] as const
  })
  return Object.fromEntries(found.filter(([, missing]) => missing.length > 0))
}

/**
 * A module for each entry, which exports each of its functions, each method of its classes, and what its functions return, member by
 * member: whoever compiles it with `declaration` has to write each of their types.
 */
export function writeConsumers(entries: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const { checker, exports } = readEntries(Object.values(entries))
  return Object.fromEntries(
    Object.keys(entries).map((specifier, i) => {
      const lines = [...(exports[i] ?? [])].flatMap(([name, symbol]) => consumersOf(name, symbol, checker))
      return [specifier, [`import * as entry from '${specifier}'`, ...lines, ''].join('\n')]
    }),
  )
}

function consumersOf(name: string, symbol: ts.Symbol, checker: ts.TypeChecker): string[] {
  if (!(symbol.flags & (ts.SymbolFlags.Function | ts.SymbolFlags.Class | ts.SymbolFlags.Variable))) return []
  const type = checker.getTypeOfSymbol(symbol)
  const members = (kind: 'InstanceType' | 'ReturnType', signatures: readonly ts.Signature[]): string[] => {
    const returned = signatures.at(-1)?.getReturnType().getProperties() ?? []
    const own = returned.filter((each) => /^[a-z]\w*$/i.test(each.name) && isDeclaredWith(each, symbol))
    return own.map(
      (each) => `export const ${name}_${each.name} = (null! as ${kind}<typeof entry.${name}>).${each.name}`,
    )
  }
  return [
    `export const own_${name} = entry.${name}`,
    ...members('InstanceType', type.getConstructSignatures()),
    ...members('ReturnType', type.getCallSignatures()),
  ]
}

/** In the package, and not by a library of the language. */
function isDeclaredWith({ declarations = [] }: ts.Symbol, other: ts.Symbol): boolean {
  const folders = [declarations, other.declarations ?? []].map((list) =>
    list.map((each) => dirname(each.getSourceFile().fileName)),
  )
  return folders[0]?.[0] === folders[1]?.[0]
}

function readEntries(files: readonly string[]) {
  const options = { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, strict: true, types: ['node'] }
  const program = ts.createProgram(files, options)
  const checker = program.getTypeChecker()
  const exports = files.map((file) => {
    const source = program.getSourceFile(file)
    if (source === undefined) throw new Error(`${file} is not there.`)
    return exportsOf(source, checker)
  })
  return { program, checker, exports }
}

type Symbols = ReadonlySet<ts.Symbol>

/** By the names under which they are exported. */
function exportsOf(source: ts.SourceFile, checker: ts.TypeChecker): ReadonlyMap<string, ts.Symbol> {
  const module = checker.getSymbolAtLocation(source)
  const exported = module === undefined ? [] : checker.getExportsOfModule(module)
  return new Map(exported.map((each) => [each.name, aliased(each, checker)]))
}

function aliased(symbol: ts.Symbol, checker: ts.TypeChecker): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

/** With those of the namespaces among them. */
function reachableIn(symbols: readonly ts.Symbol[], checker: ts.TypeChecker): Symbols {
  const namespaces = symbols.filter(
    ({ flags }) => flags & (ts.SymbolFlags.NamespaceModule | ts.SymbolFlags.ValueModule),
  )
  const inner = namespaces.flatMap((each) => checker.getExportsOfModule(each))
  return new Set([...symbols, ...inner.flatMap((each) => [each, aliased(each, checker)])])
}

/** `received`: a user gets a value of the type. `given`: a user passes one, and gets what its callbacks are called with. */
type Direction = 'received' | 'given'

class Walk {
  readonly #checker: ts.TypeChecker
  readonly #folder: string
  readonly #exported: Symbols
  /** By any file of the package. */
  readonly #published: Symbols
  readonly #missing = new Map<ts.Symbol, string>()
  readonly #seen: Record<Direction, Set<ts.Type>> = { received: new Set(), given: new Set() }

  constructor(checker: ts.TypeChecker, folder: string, exported: Symbols, published: Symbols) {
    this.#checker = checker
    this.#folder = folder
    this.#exported = exported
    this.#published = published
    for (const symbol of exported) {
      if (symbol.flags & ts.SymbolFlags.Value) this.#visit(checker.getTypeOfSymbol(symbol), 'received', symbol.name)
      if (symbol.flags & ts.SymbolFlags.Type) this.#visit(checker.getDeclaredTypeOfSymbol(symbol), 'given', symbol.name)
    }
  }

  get missing(): readonly string[] {
    return [...this.#missing].map(([{ name }, way]) => `${name} (${way})`).sort()
  }

  #visit(type: ts.Type, direction: Direction, way: string): void {
    if (this.#seen[direction].has(type)) return
    this.#seen[direction].add(type)
    for (const symbol of [type.aliasSymbol, type.symbol]) {
      if (symbol === undefined) continue
      if (this.#isNamed(symbol) && !this.#exported.has(symbol) && !this.#missing.has(symbol))
        this.#missing.set(symbol, way)
      if (OPAQUE.has(symbol.name)) return
    }
    if (type.flags & ts.TypeFlags.IndexedAccess) this.#visit((type as ts.IndexedAccessType).objectType, direction, way)
    const constraint = type.isTypeParameter() ? type.getConstraint() : undefined
    if (constraint !== undefined) this.#visit(constraint, direction, way)
    for (const argument of type.aliasTypeArguments ?? []) this.#visit(argument, direction, way)
    if (type.isUnionOrIntersection()) for (const part of type.types) this.#visit(part, direction, way)
    if (isReference(type))
      for (const argument of this.#checker.getTypeArguments(type)) this.#visit(argument, direction, way)
    if (!type.isUnion()) this.#visitMembers(type, direction, way)
  }

  #visitMembers(type: ts.Type, direction: Direction, way: string): void {
    const opposite = direction === 'received' ? 'given' : 'received'
    for (const signature of [...type.getCallSignatures(), ...type.getConstructSignatures()]) {
      if (!this.#isOwn(signature.declaration)) continue
      for (const parameter of signature.parameters) {
        this.#visit(this.#checker.getTypeOfSymbol(parameter), opposite, `${way}(${parameter.name})`)
      }
      this.#visit(signature.getReturnType(), direction, `${way}()`)
    }
    for (const property of type.getProperties()) {
      if (!this.#isOwn(property.declarations?.[0]) || isPrivate(property)) continue
      this.#visit(this.#checker.getTypeOfSymbol(property), direction, `${way}.${property.name}`)
    }
  }

  /** At the top of a file of the package. An alias that no file exports is none: a compiler writes what it stands for. */
  #isNamed(symbol: ts.Symbol): boolean {
    const own = (symbol.declarations ?? []).filter((each) => ts.isSourceFile(each.parent) && this.#isOwn(each))
    return own.some(
      (each) =>
        ts.isInterfaceDeclaration(each) ||
        ts.isClassDeclaration(each) ||
        ts.isEnumDeclaration(each) ||
        (ts.isTypeAliasDeclaration(each) && this.#published.has(symbol) && !this.#hasNamesake(symbol)),
    )
  }

  /** The entry of the payments service's webhooks has its own type under a name of the receiver's. */
  #hasNamesake({ name }: ts.Symbol): boolean {
    return [...this.#exported].some((each) => each.name === name)
  }

  #isOwn(declaration: ts.Node | undefined): boolean {
    return declaration !== undefined && dirname(declaration.getSourceFile().fileName) === this.#folder
  }
}

function isReference(type: ts.Type): type is ts.TypeReference {
  return ((type as ts.ObjectType).objectFlags & ts.ObjectFlags.Reference) !== 0
}

function isPrivate({ name, valueDeclaration }: ts.Symbol): boolean {
  if (name.startsWith('__#')) return true
  return (
    valueDeclaration !== undefined &&
    (ts.getCombinedModifierFlags(valueDeclaration as ts.Declaration) & ts.ModifierFlags.Private) !== 0
  )
}
