import { Buffer } from 'node:buffer'
import { describeKind } from '../../src/core/index.js'
import { isNoScript, redactArguments } from './errors.js'
import type { Script } from './scripts.js'

/**
 * Sends one command to the node that has the key. Resolves with its reply, in which every string is a Buffer. `ioredis`
 * and `redis` (node-redis) clients are converted to it; write your own for any other client.
 */
export type SendCommand = (key: string, args: readonly (string | Buffer)[]) => Promise<unknown>

/** ioredis 5 or 6: `Redis` or `Cluster`. */
type Ioredis = {
  callBuffer(command: string, ...args: (string | Buffer)[]): Promise<unknown>
}

/** node-redis 5 or 6: a client, a cluster or a sentinel. The arguments of their `sendCommand` differ. */
type NodeRedis = {
  // biome-ignore lint/suspicious/noExplicitAny: three signatures under one name
  sendCommand(...args: any[]): Promise<unknown>
  // biome-ignore lint/suspicious/noExplicitAny: only its presence matters: it tells 5 and 6 from older versions
  withTypeMapping(...args: any[]): unknown
}

/** An `ioredis` 5 or 6 or `redis` (node-redis) 5 or 6 client. The application opens, configures and closes it. */
export type RedisClient = Ioredis | NodeRedis

export const EXPECTED_CLIENT =
  'a client of ioredis 5 or 6 (Redis or Cluster) or of redis 5 or 6 (client, cluster or sentinel), awaited and not pooled; ' +
  'for another one give `sendCommand: (key, args) => …` that resolves with Buffers'

/** What a client is that was given as `client` and is none, with what to do about it. */
export function describeClient(client: unknown): string {
  const isMock = isIoredis(client) && !has(client as object, 'callBuffer')
  return isMock
    ? "a client of ioredis-mock, whose Lua does not run the store's scripts: in tests use new MemoryStore() of once-per-key/memory, or a real Redis"
    : describeKind(client)
}

/**
 * The mistake if a client, or its URL (which may hold a password), was passed instead of the options; `null` if not.
 */
export function findMisplacedClient(options: unknown): string | null {
  if (options === undefined || options === null || isOptions(options)) return null
  const isUrl = typeof options === 'string' || options instanceof URL
  const seen = isUrl ? 'a URL' : createSender(options) !== null ? 'a client' : describeKind(options)
  return `\n  - expected options; seen: ${seen}. Write \`{ client }\`, with your own client: new RedisStore({ client: new Redis(url) })`
}

function isOptions(options: object): boolean {
  if (typeof options !== 'object') return false
  const prototype: unknown = Object.getPrototypeOf(options)
  return prototype === null || prototype === Object.prototype || Object.hasOwn(options, 'client')
}

/** A server of its own, or one of a cluster's masters. */
export interface ClusterNode {
  /** By which it is found again: its address. */
  readonly name: string
  readonly send: SendCommand
  /** What the client of the application puts before every key, as ioredis can be told. */
  readonly keyPrefix: string
  /** What `send` puts there by itself: the same, or, in a cluster, perhaps nothing. */
  readonly added: string
}

/** Every server that holds keys, in the order of their names. */
export async function listNodes(client: object): Promise<readonly ClusterNode[]> {
  const keyPrefix = readKeyPrefix(client)
  if (has(client, 'nodes')) {
    const masters = (client as IoredisCluster).nodes('master')
    return requireAllSlotsCovered(
      masters.map((each) => createClusterNode(formatAddress(each.options), each, keyPrefix)),
    )
  }
  if ('slots' in client) {
    const { masters, nodeClient } = client as object as NodeRedisCluster
    const opened = masters.map(async (each) =>
      createClusterNode(formatAddress(each), await nodeClient.call(client, each), keyPrefix),
    )
    return requireAllSlotsCovered(await Promise.all(opened))
  }
  return [createClusterNode(THE_ONLY_ONE, client, keyPrefix)]
}

function createClusterNode(name: string, client: unknown, keyPrefix: string): ClusterNode {
  return { name, send: createSender(client) as SendCommand, keyPrefix, added: readKeyPrefix(client) }
}

/** ioredis adds it to keys, and to no pattern. node-redis adds its own to neither where a command is sent as it is. */
export function readKeyPrefix(client: unknown): string {
  if (!isIoredis(client)) return ''
  return String((client as { readonly options?: { readonly keyPrefix?: unknown } }).options?.keyPrefix ?? '')
}

const THE_ONLY_ONE = 'server'

interface Address {
  readonly host?: string
  readonly port?: number
}

interface IoredisCluster {
  nodes(role: 'master'): readonly { readonly options: Address }[]
}

interface NodeRedisCluster {
  readonly masters: readonly Address[]
  nodeClient(master: Address): Promise<unknown> | unknown
}

function formatAddress({ host, port }: Address): string {
  return `${host}:${port}`
}

const SLOTS = 16_384

/** In order. A client hears of a new master only where it is redirected: one that it does not know yet is not passed over. */
async function requireAllSlotsCovered(nodes: readonly ClusterNode[]): Promise<readonly ClusterNode[]> {
  const ranges = await Promise.all(nodes.map(readSlotRanges))
  if (ranges.some((each) => each.includes('['))) {
    throw new TypeError(
      'Slots of the cluster are on their way to another master, and a record could be passed over: try again later; if no move is ' +
        'under way, one was broken off, and `redis-cli --cluster fix` mends it.',
    )
  }
  const owned = ranges.reduce((sum, each) => sum + countSlots(each), 0)
  if (owned < SLOTS) {
    throw new TypeError(
      `The client does not know every master of the cluster: those that it knows own ${owned} of ${SLOTS} slots. It hears of the ` +
        'others as it sends commands for their keys: try again later, or connect it anew.',
    )
  }
  return nodes.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** `CLUSTER NODES`: after seven fields, the ranges of slots; those in brackets are on their way. */
async function readSlotRanges({ send }: ClusterNode): Promise<string> {
  const told = String(await send('', ['CLUSTER', 'NODES']))
  return /^\S+ \S+ \S*myself\S*(?: \S+){5}(.*)/m.exec(told)?.[1] ?? ''
}

function countSlots(ranges: string): number {
  const owned = [...ranges.matchAll(/ (\d+)(?:-(\d+))?(?= |$)/g)]
  return owned.reduce((sum, [, first, last = first]) => sum + Number(last) - Number(first) + 1, 0)
}

/** By a `sendCommand`, which goes where a key is: in a cluster a walk would miss what the other servers have. */
export async function listOnlyServer(send: SendCommand, prefix: string): Promise<readonly ClusterNode[]> {
  if (!/^cluster_enabled:0/m.test(String(await send(prefix, ['INFO', 'cluster'])))) {
    throw new TypeError('In a cluster `list` needs a `client`: with a `sendCommand` it cannot reach every server.')
  }
  return [{ name: THE_ONLY_ONE, send, keyPrefix: '', added: '' }]
}

/** `null`: not a known client. */
export function createSender(client: unknown): SendCommand | null {
  if (typeof client !== 'object' || client === null) return null
  // Checked first, because ioredis also has a sendCommand, with another meaning. Its pipelines look like a client but
  // return no replies.
  if (isIoredis(client)) {
    const isWhole = has(client, 'callBuffer') && !('isPipeline' in client)
    return isWhole ? createIoredisSender(client as unknown as IoredisMethods) : null
  }
  // Before version 5 there was no type mapping: replies would lose bytes. A pool has idleClients.
  if (!has(client, 'sendCommand') || !has(client, 'withTypeMapping') || 'idleClients' in client) return null
  const redis = client as NodeRedis
  if ('slots' in client) return (key, args) => redis.sendCommand(key, false, args, AS_BUFFERS)
  if ('getSentinelNode' in client) return (_key, args) => redis.sendCommand(false, args, AS_BUFFERS)
  return (_key, args) => redis.sendCommand(args, AS_BUFFERS)
}

/**
 * Calls the method of each command: `callBuffer` loses the command's name if `enableAutoPipelining` is on. Lists the
 * methods that ioredis's types lack.
 */
interface IoredisMethods {
  evalshaBuffer(...args: (string | Buffer)[]): Promise<unknown>
  evalBuffer(...args: (string | Buffer)[]): Promise<unknown>
  info(section: string): Promise<unknown>
  cluster(subcommand: string): Promise<unknown>
  scanBuffer(...args: (string | Buffer)[]): Promise<unknown>
}

function createIoredisSender(client: IoredisMethods): SendCommand {
  return (_key, [name, ...args]) => {
    if (name === 'EVALSHA') return client.evalshaBuffer(...args)
    if (name === 'EVAL') return client.evalBuffer(...args)
    if (name === 'SCAN') return client.scanBuffer(...args)
    if (name === 'CLUSTER') return client.cluster(String(args[0]))
    return client.info(String(args[0]))
  }
}

/** Or a mock of it. */
function isIoredis(client: unknown): boolean {
  return typeof client === 'object' && client !== null && has(client, 'evalshaBuffer')
}

/** RESP's type bytes: strings are decoded as UTF-8 unless mapped to Buffers. */
const AS_BUFFERS = { typeMapping: Object.fromEntries(['$', '+', '='].map((type) => [type.charCodeAt(0), Buffer])) }

function has(client: object, method: string): boolean {
  return typeof (client as Record<string, unknown>)[method] === 'function'
}

/** The arguments of a script, behind its key. */
export type CommandArguments = readonly (string | Buffer)[]

/** Runs the script by its digest. A server without the script (new, restarted, failed over) gets its text once. */
export function runScript(
  sendCommand: SendCommand,
  { sha1, text }: Script,
  redisKey: string,
  args: CommandArguments,
): Promise<unknown> {
  const send = (name: string, script: string) => sendCommand(redisKey, [name, script, '1', redisKey, ...args])
  return send('EVALSHA', sha1)
    .catch((error) => (isNoScript(error) ? send('EVAL', text) : Promise.reject(error)))
    .catch((error) => Promise.reject(redactArguments(error, [redisKey, ...args])))
}

/**
 * What the application's function throws counts as rejected, and what it returns as resolved. Clients throw too: ioredis's
 * cluster, with auto-pipelining, for a slot that no server is known to have.
 */
export function toAsyncSender(sendCommand: SendCommand): SendCommand {
  return (key, args) => {
    try {
      return Promise.resolve(sendCommand(key, args))
    } catch (error) {
      return Promise.reject(error)
    }
  }
}
