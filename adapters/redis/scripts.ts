import { hash } from 'node:crypto'

/** A script as text, and as the digest by which a server remembers it. */
export interface Script {
  readonly text: string
  readonly sha1: string
}

/**
 * The machine (`src/core/machine.ts`) in Lua, line by line: same names, same order. A property test holds both to the
 * same histories.
 *
 * A record is one string: a format version, the length of its fields, the fields (MessagePack), then the body as it is.
 * Measured against a hash, it takes two thirds of the memory (`npm run measure:redis`). The retention is the key's expiry.
 * Frozen within a major version, and held by golden files.
 */
const RECORD = `
local key = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function unreadable(why)
  error({ err = 'UNREADABLE the record is ' .. why .. '; it was left as it is' })
end

local function read()
  local value = redis.call('GET', key)
  if not value then return nil end
  if string.sub(value, 1, 1) ~= '1' then unreadable('of another format than version 1') end
  local intact, length, from = pcall(struct.unpack, '>I4', value, 2)
  if not intact or #value < from - 1 + length then unreadable('damaged') end
  local fields
  intact, fields = pcall(cmsgpack.unpack, string.sub(value, from, from + length - 1))
  if not intact or type(fields) ~= 'table' then unreadable('damaged') end
  local record = { state = fields[1], token = fields[2], fingerprint = fields[3], attempt = fields[4] }
  if record.state == 'in-flight' then
    record.uncertain, record.lease_until = fields[5], fields[6]
  elseif record.state == 'failed' then
    record.uncertain = fields[5]
  elseif record.state == 'completed' then
    record.status, record.status_message, record.headers, record.kept = fields[5], fields[6], fields[7], fields[8]
    record.body = string.sub(value, from + length)
  else
    unreadable('damaged')
  end
  return record
end

local function write(fields, body, expires_ms)
  local packed = cmsgpack.pack(fields)
  redis.call('SET', key, '1' .. struct.pack('>I4', #packed) .. packed .. body, 'PX', expires_ms)
end

local function shown(record)
  local uncertain = record.uncertain and 1 or 0
  if record.state == 'in-flight' then
    return { 'in-flight', record.fingerprint, record.attempt, uncertain, record.lease_until - now }
  elseif record.state == 'failed' then
    return { 'failed', record.fingerprint, record.attempt, uncertain }
  end
  return {
    'completed', record.fingerprint, record.attempt,
    record.status, record.status_message, record.headers, record.kept and 1 or 0, record.body
  }
end
`

/**
 * Without flags, so that under `maxmemory` a refusal or a replay, which write nothing, still get through: only the SET of
 * a new claim fails.
 */
export const BEGIN = script(`${RECORD}
local token, fingerprint = ARGV[1], ARGV[2]
local lease_ms, retention_ms = tonumber(ARGV[3]), tonumber(ARGV[4])
local unknown_outcome = ARGV[5]

local function acquired(attempt, uncertain)
  local previous_outcome = 'none'
  if uncertain then previous_outcome = 'unknown' elseif attempt > 1 then previous_outcome = 'failed' end
  return { 'acquired', attempt, previous_outcome }
end

local function acquire(attempt, uncertain)
  write({ 'in-flight', token, fingerprint, attempt, uncertain, now + lease_ms }, '', retention_ms)
  return acquired(attempt, uncertain)
end

local function acquire_again(record)
  write({ 'in-flight', token, record.fingerprint, record.attempt, record.uncertain, now + lease_ms }, '', retention_ms)
  return acquired(record.attempt, record.uncertain)
end

local function take_over(record)
  if unknown_outcome == 'refuse' then return shown(record) end
  return acquire(record.attempt + 1, true)
end

local record = read()
if not record then return acquire(1, false) end

if record.token == token then
  if record.state == 'in-flight' then return acquire_again(record) end
  return shown(record)
end

if record.state == 'completed' then
  return shown(record)
elseif record.state == 'in-flight' then
  if record.fingerprint ~= fingerprint then return shown(record) end
  if now < record.lease_until then return shown(record) end
  return take_over(record)
else
  if not record.uncertain then return acquire(record.attempt + 1, false) end
  if record.fingerprint ~= fingerprint then return shown(record) end
  return take_over(record)
end
`)

/** What an owner shows of itself; its commands must get through even where `maxmemory` is reached. */
const OWNER = `#!lua flags=allow-oom
${RECORD}
local token, fingerprint = ARGV[1], ARGV[2]
local attempt, uncertain = tonumber(ARGV[3]), ARGV[4] == '1'
local retention_ms = tonumber(ARGV[5])
local OK = { 'ok' }
`

export const RENEW = script(`${OWNER}
local lease_ms = tonumber(ARGV[6])

local record = read()
if not record then
  write({ 'in-flight', token, fingerprint, attempt, uncertain, now + lease_ms }, '', retention_ms)
  return OK
end
if record.token ~= token or record.state ~= 'in-flight' then return shown(record) end
write({ 'in-flight', token, record.fingerprint, record.attempt, record.uncertain, now + lease_ms }, '', retention_ms)
return OK
`)

export const COMPLETE = script(`${OWNER}
local status, status_message, headers = tonumber(ARGV[6]), ARGV[7], ARGV[8]
local kept, body = ARGV[9] == '1', ARGV[10]

local record = read()
if record then
  if record.token ~= token or record.state == 'failed' then return shown(record) end
  if record.state == 'completed' then return OK end
  fingerprint, attempt = record.fingerprint, record.attempt
end
write({ 'completed', token, fingerprint, attempt, status, status_message, headers, kept }, body, retention_ms)
return OK
`)

export const RELEASE = script(`${OWNER}
local failed_ms = tonumber(ARGV[6])

local record = read()
if record then
  if record.token ~= token or record.state == 'completed' then return shown(record) end
  if record.state == 'failed' then return OK end
  fingerprint, attempt, uncertain = record.fingerprint, record.attempt, uncertain or record.uncertain
end
if uncertain then
  write({ 'failed', token, fingerprint, attempt, true }, '', retention_ms)
else
  write({ 'failed', token, '', attempt, false }, '', failed_ms)
end
return OK
`)

function script(text: string): Script {
  return { text, sha1: hash('sha1', text, 'hex') }
}
