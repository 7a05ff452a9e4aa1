-- Sends plants with random 64-bit ids; prints the measurements of wrk as one line of JSON.
local ffi = require("ffi")

-- Read from the environment, because a command line is visible to everybody on the machine.
local token = os.getenv("BENCH_TOKEN")
-- Requests a second of this thread; nil: each response is followed by the next request at once.
local rate = tonumber(os.getenv("BENCH_RATE_OF_THREAD"))
local serial = 0

if rate then
  ffi.cdef("typedef struct { long seconds; long nanoseconds; } timespec; int clock_gettime(int clock, timespec *time);")
  local time = ffi.new("timespec")
  local nextAt

  local function now()
    ffi.C.clock_gettime(1, time)
    return tonumber(time.seconds) * 1000 + tonumber(time.nanoseconds) / 1e6
  end

  -- Every free connection takes the next place in an even schedule; a late one sends at once.
  function delay()
    nextAt = (nextAt or now()) + 1000 / rate
    return math.max(0, nextAt - now())
  end
end

function setup(thread)
  serial = serial + 1
  thread:set("seed", os.time() * 100 + serial)
end

function init()
  math.randomseed(seed)
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
  if token then
    wrk.headers["Authorization"] = "Bearer " .. token
  end
end

function request()
  local high = ffi.new("int64_t", math.random(-2147483648, 2147483647))
  local id = tostring(high * 4294967296LL + math.random(0, 4294967295)):sub(1, -3)
  return wrk.format(nil, nil, nil, '{"id":' .. id .. ',"name":"Equisetum fluviatile","tag":"Equisetum"}')
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    '{"requests":%d,"microseconds":%d,"p50":%d,"p90":%d,"p99":%d,"max":%d,"connect":%d,"read":%d,"write":%d,"timeout":%d,"status":%d}',
    summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(90), latency:percentile(99), latency.max,
    errors.connect, errors.read, errors.write, errors.timeout, errors.status
  ))
end
