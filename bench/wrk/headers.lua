-- headers.lua: GET with many request headers, as browsers behind a single sign-on send them.
--
--   wrk -t1 -c32 -d5s -s bench/wrk/headers.lua URL -- headers=32 bytes=64 [cookie=2048] [host=NAME]
--
-- headers: their number; bytes: the size of each value; cookie: the size of the Cookie header, 0 for none.

local figures = dofile((debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "figures.lua")

setup = figures.setup
done = figures.done("headers")

local request_text

function init(arguments)
   local options = figures.options(arguments, { headers = 32, bytes = 64, cookie = 2048, host = "" })
   local headers = {}
   for number = 1, options.headers do
      headers[string.format("X-Bench-%03d", number)] = string.rep("v", options.bytes)
   end
   if options.cookie > 0 then headers["Cookie"] = "session=" .. string.rep("c", options.cookie) end
   if options.host ~= "" then headers["Host"] = options.host end
   request_text = wrk.format("GET", nil, headers)
end

function request()
   return request_text
end
