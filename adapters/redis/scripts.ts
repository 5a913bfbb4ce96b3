/**
 * The machine (`src/core/machine.ts`) in Lua, line by line: same names, same order. A property test runs the same
 * histories on both.
 */
import { hash } from 'node:crypto'
import { RECORD } from './record-format.js'

/** A script's text, and the digest by which a server caches it. */
export interface Script {
  readonly text: string
  readonly sha1: string
}

const CLAIMED = `
local function claimed(attempt, uncertain)
  local lease_until = now + lease_ms
  return {
    state = 'in-flight', token = token, fingerprint = fingerprint, attempt = attempt, uncertain = uncertain,
    lease_until = lease_until
  }
end

local function extended(record)
  record.lease_until = now + lease_ms
  return record
end
`

/**
 * Redis 7 brought this version number and script flags. On an older server only claims would work: a payment would be
 * made and never recorded.
 */
const SUPPORTED = `
if not redis.REDIS_VERSION_NUM then
  return redis.error_reply('UNSUPPORTED the store needs Redis 7 or later, or Valkey')
end
`

/**
 * Without flags, so that under `maxmemory` refusals and replays, which write nothing, still work: only the SET of a new
 * claim fails.
 */
export const BEGIN = script(`${SUPPORTED}${RECORD}
local token, fingerprint = ARGV[1], ARGV[2]
local lease_ms, retention_ms = tonumber(ARGV[3]), tonumber(ARGV[4])
local unknown_outcome = ARGV[5]
${CLAIMED}
local function previous_outcome(attempt, uncertain)
  if uncertain then return 'unknown' end
  return attempt > 1 and 'failed' or 'none'
end

local function acquired(attempt, uncertain)
  return { 'acquired', attempt, previous_outcome(attempt, uncertain) }
end

local function acquire(attempt, uncertain)
  write(claimed(attempt, uncertain), retention_ms)
  return acquired(attempt, uncertain)
end

local function acquire_again(record)
  write(extended(record), retention_ms)
  return acquired(record.attempt, record.uncertain)
end

local function refuse(record)
  return shown(record, fingerprint)
end

local function take_over(record)
  if unknown_outcome == 'refuse' then return refuse(record) end
  return acquire(record.attempt + 1, true)
end

local record = read()
if not record then return acquire(1, false) end

if record.token == token then
  if record.state == 'in-flight' then return acquire_again(record) end
  return refuse(record)
end

if record.state == 'completed' then
  return refuse(record)
elseif record.state == 'in-flight' then
  if record.fingerprint ~= fingerprint then return refuse(record) end
  if now < record.lease_until then return refuse(record) end
  return take_over(record)
else
  if not record.uncertain then return acquire(record.attempt + 1, false) end
  if record.fingerprint ~= fingerprint then return refuse(record) end
  return take_over(record)
end
`)

/** `renew`, `complete`, `resolve` and `forget` must work even when `maxmemory` is reached. */
export const ALLOW_OOM = `#!lua flags=allow-oom
`

export const DONE = `
local OK = { 'ok' }

local function stale(record, asker)
  return shown(record, asker)
end
`

/** The arguments that an owner sends with each command. */
const OWN = `${RECORD}
local token, fingerprint = ARGV[1], ARGV[2]
local attempt, uncertain = tonumber(ARGV[3]), ARGV[4] == '1'
local retention_ms = tonumber(ARGV[5])
${DONE}`

/** The arguments of an answer, starting at this index. */
function answerFrom(first: number): string {
  const argument = (offset: number) => `ARGV[${first + offset}]`
  return `{
  status = tonumber(${argument(0)}), status_message = ${argument(1)}, headers = ${argument(2)},
  kept = ${argument(3)} == '1', body = ${argument(4)}
}`
}

export const RENEW = script(`${ALLOW_OOM}${OWN}
local lease_ms = tonumber(ARGV[6])
${CLAIMED}
local record = read()
if not record then
  write(claimed(attempt, uncertain), retention_ms)
  return OK
end
if record.token ~= token or record.state ~= 'in-flight' then return stale(record, fingerprint) end
write(extended(record), retention_ms)
return OK
`)

export const COMPLETE = script(`${ALLOW_OOM}${OWN}
local answer = ${answerFrom(6)}

local record = read()
if record then
  if record.token ~= token or record.state == 'failed' then return stale(record, fingerprint) end
  if record.state == 'completed' then return OK end
  fingerprint, attempt = record.fingerprint, record.attempt
end
write({ state = 'completed', token = token, fingerprint = fingerprint, attempt = attempt, answer = answer }, retention_ms)
return OK
`)

/**
 * Without flags. When `maxmemory` is reached, it can still replace an existing record (after DEL, Redis lets a script
 * finish). It cannot add a fence for a claim that was refused for lack of memory: such fences could grow without bound.
 * If that claim arrives late after all, its lease ends it.
 */
export const RELEASE = script(`${OWN}
local failed_ms = tonumber(ARGV[6])

local record = read()
if record then
  if record.token ~= token or record.state == 'completed' then return stale(record, fingerprint) end
  if record.state == 'failed' then return OK end
  fingerprint, attempt, uncertain = record.fingerprint, record.attempt, uncertain or record.uncertain
  redis.call('DEL', key)
end
if not uncertain then fingerprint = '' end
local expires_ms = uncertain and retention_ms or failed_ms
local tombstone = { state = 'failed', token = token, fingerprint = fingerprint, attempt = attempt, uncertain = uncertain }
local written, problem = pcall(write, tombstone, expires_ms)
if not written then
  local reason = type(problem) == 'table' and problem.err or tostring(problem)
  if uncertain or not string.find(reason, 'OOM', 1, true) then error(problem) end
end
return OK
`)

export const NONE = `
local NONE = { 'none' }
`

/** The flag makes Redis enforce that nothing is written. */
export const INSPECT = script(`#!lua flags=no-writes
${RECORD}${NONE}
local record = read()
if not record then return NONE end
return shown(record)
`)

const IS_UNKNOWN = `
local function is_unknown(record)
  if record.state == 'in-flight' then return now >= record.lease_until end
  return record.state == 'failed' and record.uncertain
end
`

/** For a walk through all keys: what cannot be read is passed over. */
export const UNKNOWN = script(`#!lua flags=no-writes
${RECORD}${NONE}${IS_UNKNOWN}
local readable, record = pcall(read)
if not readable or not record or not is_unknown(record) then return NONE end
local reply = shown(record)
reply[#reply + 1] = redis.call('PTTL', key)
return reply
`)

export const RESOLVE = script(`${ALLOW_OOM}${RECORD}${NONE}
local token, attempt, retention_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local answer = ARGV[4] and ${answerFrom(4)}
${DONE}${IS_UNKNOWN}
local record = read()
if not record then return NONE end
if record.token == token and record.state ~= 'in-flight' then return OK end
if record.attempt ~= attempt or not is_unknown(record) then return stale(record) end

attempt = record.attempt + 1
local expires_ms = math.max(redis.call('PTTL', key), retention_ms)
if not answer then
  write({ state = 'failed', token = token, fingerprint = '', attempt = attempt, uncertain = false }, expires_ms)
else
  local completed = { state = 'completed', token = token, fingerprint = record.fingerprint, attempt = attempt }
  completed.answer = answer
  write(completed, expires_ms)
end
return OK
`)

export function script(text: string): Script {
  return { text, sha1: hash('sha1', text, 'hex') }
}
