# Clients and servers as distributions have them, on both sides of a policy's list of hosts: no program knows of it.
load helpers
load network

# names: dnsmasq answers for allowed.test and below, and for evil.test; $net/dnsmasq.words has each question.
names() {
	needs dnsmasq
	serve dnsmasq 127.0.0.1 53 dnsmasq -k -C /dev/null -u "$(id -un)" -g "$(id -gn)" --pid-file= --no-resolv --no-hosts \
		--listen-address=127.0.0.1 --bind-interfaces --log-queries --log-facility=- \
		--address=/allowed.test/203.0.113.1 --address=/evil.test/203.0.113.66
}

# asked NAME...: dnsmasq was asked for these and no others.
asked() {
	local got
	got=$(sed -nE 's/.* query\[[^]]*\] ([^ ]+) from .*/\1/p' "$net/dnsmasq.words" | sort -u | xargs)
	[ "$got" = "$*" ] || fail "names asked for: $got, expected: $*"
}

# web: nginx has $net/www at 80 and 443, and writes what it is asked for to $net/access.
web() {
	needs nginx openssl
	mkdir -p "$net/tmp"
	cat >"$net/nginx.conf" <<-END
		daemon off; master_process off; pid $net/nginx.pid; error_log stderr;
		events { worker_connections 1024; }
		http {
			access_log $net/access; types { text/html html; } default_type application/octet-stream;
			client_body_temp_path $net/tmp/1; proxy_temp_path $net/tmp/2; fastcgi_temp_path $net/tmp/3;
			uwsgi_temp_path $net/tmp/4; scgi_temp_path $net/tmp/5;
			server {
				listen 80 backlog=1024; listen 443 ssl backlog=1024; root $net/www; autoindex on;
				ssl_certificate $net/cert.pem; ssl_certificate_key $net/key.pem;
			}
		}
	END
	serve nginx 203.0.113.1 443 nginx -p "$net" -e stderr -c "$net/nginx.conf"
	cp "$net/ca.pem" .
	echo found >"$net/www/file"
}

# repository: a commit on main in $net/www/r.git, which both ways of cloning find.
repository() {
	git init -q -b main "$top/r"
	echo content >"$top/r/file"
	git -C "$top/r" add file
	git -C "$top/r" -c user.name=t -c user.email=t@t.test commit -q -m one
	git clone -q --bare "$top/r" "$net/www/r.git"
	git -C "$net/www/r.git" update-server-info
}

@test "A67: curl, wget and Python, from nginx and by names from dnsmasq, with no proxy and no variable" {
	needs landlock curl wget
	internet 53 80 443
	names
	web
	allow allowed.test
	cat >fetch.py <<-'END'
		import asyncio, os, ssl, urllib.request
		assert not [name for name in os.environ if "proxy" in name.lower()]
		tls = ssl.create_default_context(cafile="ca.pem")
		for scheme in "http", "https":
		    context = tls if scheme == "https" else None
		    print("urllib", urllib.request.urlopen(scheme + "://allowed.test/file", timeout=20, context=context).read())
		async def fetch():
		    reader, writer = await asyncio.open_connection("allowed.test", 443, ssl=tls)
		    writer.write(b"GET /file HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n")
		    print("asyncio", (await reader.read()).splitlines()[-1])
		asyncio.run(asyncio.wait_for(fetch(), 20))
	END
	# shellcheck disable=SC2016 # for the shell inside
	box -- sh -c 'for s in http https; do
		curl -sS --cacert ca.pem $s://allowed.test/file && wget -q -O - --ca-certificate=ca.pem $s://allowed.test/file
	done; python3 -I fetch.py'
	want_exit 0 $'found\nfound\nfound\nfound\nurllib b\'found\\n\'\nurllib b\'found\\n\'\nasyncio b\'found\''
	want '.violations == []' '.stderr == ""'
	carried allowed.test 80 3
	carried allowed.test 443 4
	[ "$(grep -c 'GET /file HTTP/1.1" 200' "$net/access")" = 7 ]
	asked allowed.test
	# What is not listed: nobody is asked, and by its address nobody is reached.
	box -- sh -c 'curl -sS http://evil.test/file; echo $?; wget -q -T 5 -t 1 -O - http://evil.test/file; echo $?
		curl -sS http://203.0.113.66/file; echo $?; curl -sS http://203.0.113.1/file; echo $?'
	want_exit 0
	want '.stdout | test("^6\n4\n(7|35|52|56)\n(7|35|52|56)\n$")'
	asked allowed.test
	[ "$(wc -l <"$net/access")" = 7 ]
}

@test "A67: programs that ask for IPv4 alone, where an interface has it, are answered" {
	needs landlock curl wget
	internet
	allow allowed.test:80
	box -- sh -c 'getent ahostsv4 allowed.test | grep -c STREAM; getent ahosts allowed.test | grep -c STREAM
		wget -4 -q -O - http://allowed.test/w; curl -4 -sS http://allowed.test/c; getent ahostsv4 evil.test; echo $?'
	want_exit 0 $'1\n1\nGET /w allowed.test\nGET /c allowed.test\n2'
	box -- "$python" -I -S -c 'import socket
flags = socket.AI_ADDRCONFIG | socket.AI_CANONNAME
print(sorted({(a[0].name, a[4][0][:4]) for f in (0, 2) for a in socket.getaddrinfo("allowed.test", 80, f, 1, 0, flags)}))'
	want_exit 0 "[('AF_INET', '198.')]"
}

@test "A67: git clones over https from nginx and over ssh from OpenSSH's server" {
	needs landlock git ssh sshd
	internet 22 80 443
	web
	repository
	ssh-keygen -q -t ed25519 -N '' -f "$net/host"
	ssh-keygen -q -t ed25519 -N '' -f key
	cat >"$net/sshd.conf" <<-END
		Port 22
		HostKey $net/host
		AuthorizedKeysFile $net/authorized
		StrictModes no
		UsePAM no
		PidFile none
		PermitRootLogin prohibit-password
	END
	cp key.pub "$net/authorized"
	echo "allowed.test $(cat "$net/host.pub")" >known
	# The place that the package's script makes at the machine's start, and that root's server wants.
	# shellcheck disable=SC2016
	local begin='exec /usr/sbin/sshd -D -e -f "$0"'
	[ "$(id -u)" != 0 ] || begin="mount -t tmpfs none /run && mkdir /run/sshd && $begin"
	[ "$(id -u)" != 0 ] || set -- unshare -m
	serve sshd 203.0.113.1 22 "$@" sh -c "$begin" "$net/sshd.conf"
	allow '"allowed.test:443", "allowed.test:22"'
	# shellcheck disable=SC2016
	box -e GIT_SSL_CAINFO="$PWD/ca.pem" -e "GIT_SSH_COMMAND=ssh -F none -i key -o UserKnownHostsFile=known -o BatchMode=yes" \
		-e "from=$(id -un)@allowed.test$net" -- sh -c 'git clone -q https://allowed.test/r.git /tmp/a && cat /tmp/a/file &&
			git clone -q "ssh://$from/www/r.git" /tmp/b && git -C /tmp/b log --format=%s'
	want_exit 0 $'content\none'
	want '.violations == []'
	carried allowed.test 22 1
	want '[.network[] | select(.port == 443)][0].connections > 0'
	grep -q 'Accepted publickey' "$net/sshd.words"
}

@test "A67: Node's fetch and s_client, from s_server" {
	needs landlock node openssl
	internet 443
	serve s_server 203.0.113.1 443 openssl s_server -quiet -accept 443 -cert "$net/cert.pem" -key "$net/key.pem" -www
	cp "$net/ca.pem" .
	allow allowed.test:443
	box -e NODE_EXTRA_CA_CERTS="$PWD/ca.pem" -- node -e 'fetch("https://allowed.test/").then(async r =>
		console.log(r.status, (await r.text()).includes("s_server")), e => console.log(e.cause))'
	want_exit 0 '200 true'
	carried allowed.test 443 1
	box -- sh -c "printf 'GET / HTTP/1.0\r\n\r\n' | openssl s_client -quiet -connect allowed.test:443 -servername allowed.test \
		-CAfile ca.pem -verify_return_error -verify_hostname allowed.test"
	want_exit 0
	want '.stdout | contains("s_server")' '.violations == []'
	box -e NODE_EXTRA_CA_CERTS="$PWD/ca.pem" -- node -e 'fetch("https://evil.test/").catch(e => console.log(e.cause.code))'
	want_exit 0 ENOTFOUND
	refused dns evil.test not_listed
}

@test "A67: Java's URLConnection" {
	needs landlock java ecj keytool openssl
	internet
	keytool -importcert -noprompt -alias test -file "$net/ca.pem" -keystore trust -storetype PKCS12 -storepass changeit 2>&1
	cat >Ask.java <<-'END'
		public class Ask {
			public static void main(String[] args) throws Exception {
				for (String arg : args) {
					java.net.URLConnection c = new java.net.URL(arg).openConnection();
					c.setConnectTimeout(20000);
					c.setReadTimeout(20000);
					try {
						System.out.print(new String(c.getInputStream().readAllBytes()));
					} catch (java.net.UnknownHostException e) {
						System.out.println("no name");
					}
				}
			}
		}
	END
	ecj -proc:none -source 11 -target 11 Ask.java
	allow allowed.test
	box -- java -Xmx64m -XX:TieredStopAtLevel=1 -Djavax.net.ssl.trustStore=trust -Djavax.net.ssl.trustStorePassword=changeit \
		-cp . Ask http://allowed.test/j https://allowed.test/k https://evil.test/l
	want_exit 0 $'GET /j allowed.test\nGET /k allowed.test\nno name'
	carried allowed.test 80 1
	carried allowed.test 443 1
	refused dns evil.test not_listed
	not_logged evil
}

@test "A67: Go's net/http in a static program, which looks names up by itself" {
	needs landlock go openssl
	internet
	cat >ask.go <<-'END'
		package main

		import (
			"crypto/tls"
			"crypto/x509"
			"errors"
			"io"
			"net"
			"net/http"
			"os"
			"time"
		)

		func main() {
			pem, _ := os.ReadFile("ca.pem")
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(pem)
			client := http.Client{Timeout: 20 * time.Second,
				Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
			for _, url := range os.Args[1:] {
				answer, err := client.Get(url)
				var dns *net.DNSError
				if errors.As(err, &dns) && dns.IsNotFound {
					println("no name")
				} else if err != nil {
					println(err.Error())
				} else {
					io.Copy(os.Stdout, answer.Body)
				}
			}
		}
	END
	env HOME="$top" GOCACHE="$top/go" GOTOOLCHAIN=local GO111MODULE=off CGO_ENABLED=0 go build -ldflags='-s -w' -o ask ask.go
	not ldd ask
	cp "$net/ca.pem" .
	allow allowed.test
	box -- ./ask http://allowed.test/g https://allowed.test/h https://evil.test/i
	want_exit 0 $'GET /g allowed.test\nGET /h allowed.test'
	want '.stderr == "no name\n"'
	carried allowed.test 80 1
	carried allowed.test 443 1
	refused dns evil.test not_listed
	not_logged evil
}

@test "A67: pip downloads a wheel from an index, and nothing that the index points to elsewhere" {
	needs landlock pip3
	internet 53 80 443
	names
	web
	mkdir -p "$net/www/simple/small" "$net/www/simple/lure"
	"$python" -I - "$net/www/simple" <<-'END'
		import sys, zipfile
		for name in "small", "lure":
		    with zipfile.ZipFile(f"{sys.argv[1]}/{name}/{name}-1.0-py3-none-any.whl", "w") as wheel:
		        wheel.writestr(f"{name}.py", "print(6 * 7)\n")
		        info = f"{name}-1.0.dist-info/"
		        wheel.writestr(info + "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
		        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
		        wheel.writestr(info + "RECORD", "")
	END
	echo '<a href="small-1.0-py3-none-any.whl">small-1.0-py3-none-any.whl</a>' >"$net/www/simple/small/index.html"
	echo '<a href="https://evil.test/lure-1.0-py3-none-any.whl">lure-1.0-py3-none-any.whl</a>' >"$net/www/simple/lure/index.html"
	allow allowed.test:443
	local pip='pip3 --disable-pip-version-check --cert ca.pem --no-cache-dir --retries 0 --timeout 20 download -q --no-deps -d /tmp'
	box -- sh -c "$pip --index-url https://allowed.test/simple/ small && sha256sum </tmp/small-1.0-py3-none-any.whl"
	want_exit 0
	want ".stdout | contains(\"$(sha256sum <"$net/www/simple/small/small-1.0-py3-none-any.whl" | cut -c1-64)\")" '.violations == []'
	box -- sh -c "$pip --index-url https://allowed.test/simple/ lure"
	want '.exit_code != 0'
	refused dns evil.test not_listed
	asked allowed.test
}

@test "C11: 200 transfers through TLS at once from nginx, each whole" {
	needs landlock curl
	internet quiet 80 443
	web
	head -c 300000 /dev/urandom >"$net/www/some"
	allow allowed.test:443
	local want
	want=$(sha256sum <"$net/www/some" | cut -c1-64)
	box --wall 100s -- sh -c 'curl -sS --http1.1 --cacert ca.pem -Z --parallel-immediate --parallel-max 200 \
		-o "/tmp/some.#1" "https://allowed.test/some?[1-200]" && sha256sum /tmp/some.* | cut -c1-64 | sort | uniq -c'
	want_exit 0
	want ".stdout | test(\"^ *200 $want\\n\$\")" '.violations == []' \
		'[.network[] | select(.host == "allowed.test")] | length == 1 and .[0].connections >= 100 and .[0].received_bytes > 60000000'
}

@test "C11: a GiB from nginx through TLS, byte for byte, in bounded time" {
	needs landlock curl
	internet quiet 80 443
	web
	local want
	openssl enc -aes-128-ctr -K 0 -iv 0 2>/dev/null < <(head -c 1G /dev/zero) | tee "$net/www/big" | sha256sum >"$top/digest"
	want=$(cut -c1-64 "$top/digest")
	allow allowed.test:443
	box --wall "$(slow 120)s" -- sh -c '{ curl -sS --cacert ca.pem https://allowed.test/big || echo cut; } | sha256sum'
	rm "$net/www/big"
	want_exit 0 "$want  -"
	want '[.network[] | select(.port == 443)][0] | .connections == 1 and .received_bytes >= 1073741824 and .sent_bytes < 100000'
}
